//! Queues of blocks from which any block can be taken.

use std::collections::HashMap;

use super::BlockHash;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    block: u64,
    newer: u32,
    older: u32,
    /// How often it was accessed, for policies that count.
    hits: u8,
}

/// A queue: new blocks at one end, the oldest at the other.
#[derive(Debug)]
pub(super) struct List {
    nodes: Vec<Node>,
    free: Vec<u32>,
    place: HashMap<u64, u32, BlockHash>,
    newest: u32,
    oldest: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), place: HashMap::default(), newest: NONE, oldest: NONE }
    }
}

impl List {
    pub(super) fn len(&self) -> usize {
        self.place.len()
    }

    pub(super) fn has(&self, block: u64) -> bool {
        self.place.contains_key(&block)
    }

    fn node(&mut self, number: u32) -> Option<&mut Node> {
        self.nodes.get_mut(number as usize)
    }

    /// Adds a block that is not there.
    pub(super) fn push(&mut self, block: u64) {
        let node = Node { block, newer: NONE, older: self.newest, hits: 0 };
        let number = if let Some(number) = self.free.pop() {
            if let Some(free) = self.node(number) {
                *free = node;
            }
            number
        } else {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        };
        let before = self.newest;
        match self.node(before) {
            Some(before) => before.newer = number,
            None => self.oldest = number,
        }
        self.newest = number;
        self.place.insert(block, number);
    }

    /// Takes a block out. False if it was not there.
    pub(super) fn remove(&mut self, block: u64) -> bool {
        let Some(number) = self.place.remove(&block) else { return false };
        let Some(Node { newer, older, .. }) = self.node(number).copied() else { return false };
        match self.node(newer) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.node(older) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
        self.free.push(number);
        true
    }

    /// Takes the oldest block out, with its count.
    pub(super) fn pop(&mut self) -> Option<(u64, u8)> {
        let oldest = self.oldest;
        let Node { block, hits, .. } = self.node(oldest).copied()?;
        self.remove(block);
        Some((block, hits))
    }

    /// Counts an access, up to a maximum. False if the block is not there.
    pub(super) fn hit(&mut self, block: u64, most: u8) -> bool {
        let Some(number) = self.place.get(&block).copied() else { return false };
        if let Some(node) = self.node(number) {
            node.hits = node.hits.saturating_add(1).min(most);
        }
        true
    }

    /// Sets the count of the newest block.
    pub(super) fn count_newest(&mut self, hits: u8) {
        let newest = self.newest;
        if let Some(node) = self.node(newest) {
            node.hits = hits;
        }
    }
}
