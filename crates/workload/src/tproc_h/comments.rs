//! The comments of the rows. dbgen cuts them out of a text of 300 MiB at random places; here the text is kept as the numbers of its
//! words, in a sixth of the memory.
//!
//! The crate `tpchgen` makes the other columns. It gets a short text of its own, whose comments are not used: the random numbers of the
//! comments are drawn here once more.

use std::sync::OnceLock;

use tpchgen::distribution::{Distribution, Distributions};
use tpchgen::random::RowRandomInt;
use tpchgen::text::TextPool;

use super::schema::Name;

/// Characters of dbgen's text.
const SIZE: i32 = 300 * 1024 * 1024;
/// Seed of the random numbers that it is made with.
const SEED: i64 = 933_588_178;
/// Characters of the text that the other columns are made with: longer than the longest comment.
const SHORT_SIZE: i32 = 4096;
/// Characters between two places of the text that can be found at once.
const STRIDE: usize = 256;
/// Bits of a mark that count the characters of a piece; the others are the piece's index.
const SKIPPED_BITS: u32 = 6;

/// The text for `tpchgen`'s generators, whose own one takes 300 MiB.
pub(crate) fn short_text() -> &'static TextPool {
    static SHORT: OnceLock<TextPool> = OnceLock::new();
    SHORT.get_or_init(|| TextPool::new(SHORT_SIZE, Distributions::static_default()))
}

/// A text of sentences (TPC-H clause 4.2.2.14), with a space before it.
#[derive(Debug)]
pub(crate) struct CommentText {
    /// Words, each with the space before it, and marks of punctuation.
    pieces: Vec<String>,
    /// The text as indexes of pieces.
    indexes: Vec<u8>,
    /// For each [`STRIDE`]-th character, which of the indexes is that of its piece, and how many characters of the piece are before it.
    marks: Vec<u32>,
    length: usize,
    size: i32,
}

/// The words to draw from, each as often as it weighs.
struct Lists {
    sentences: Vec<&'static str>,
    noun_phrases: Vec<&'static str>,
    verb_phrases: Vec<&'static str>,
    nouns: Vec<u8>,
    adjectives: Vec<u8>,
    adverbs: Vec<u8>,
    articles: Vec<u8>,
    verbs: Vec<u8>,
    auxiliaries: Vec<u8>,
    prepositions: Vec<u8>,
    terminators: Vec<u8>,
    the: u8,
    comma: u8,
}

impl CommentText {
    /// dbgen's text, made at the first call, which takes a second.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<CommentText> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(SIZE))
    }

    /// The first `size` characters of it.
    pub(super) fn new(size: i32) -> Self {
        let mut text = Self { pieces: Vec::new(), indexes: Vec::new(), marks: Vec::new(), length: 0, size };
        let lists = Lists::new(&mut text.pieces);
        let expected = size as usize;
        text.indexes.reserve_exact(expected / 6);
        text.marks.reserve_exact(expected / STRIDE + 2);
        let mut random = RowRandomInt::new(SEED, i32::MAX);
        // With the space before it.
        while text.length < expected + 1 {
            text.sentence(&lists, &mut random);
        }
        text.indexes.shrink_to_fit();
        text
    }

    fn push(&mut self, index: u8) {
        let end = self.length + self.pieces[usize::from(index)].len();
        while self.marks.len() * STRIDE < end {
            let skipped = self.marks.len() * STRIDE - self.length;
            self.marks.push((self.indexes.len() << SKIPPED_BITS | skipped) as u32);
        }
        self.indexes.push(index);
        self.length = end;
    }

    fn sentence(&mut self, lists: &Lists, random: &mut RowRandomInt) {
        for symbol in one_of(&lists.sentences, random).bytes().step_by(2) {
            match symbol {
                b'N' => self.noun_phrase(lists, random),
                b'V' => self.verb_phrase(lists, random),
                b'P' => {
                    self.push(one_of(&lists.prepositions, random));
                    self.push(lists.the);
                    self.noun_phrase(lists, random);
                }
                _ => self.push(one_of(&lists.terminators, random)),
            }
        }
    }

    fn noun_phrase(&mut self, lists: &Lists, random: &mut RowRandomInt) {
        for symbol in one_of(&lists.noun_phrases, random).bytes() {
            let list = match symbol {
                b'N' => &lists.nouns,
                b'J' => &lists.adjectives,
                b'D' => &lists.adverbs,
                b'A' => &lists.articles,
                b',' => {
                    self.push(lists.comma);
                    continue;
                }
                _ => continue,
            };
            self.push(one_of(list, random));
        }
    }

    fn verb_phrase(&mut self, lists: &Lists, random: &mut RowRandomInt) {
        for symbol in one_of(&lists.verb_phrases, random).bytes().step_by(2) {
            let list = match symbol {
                b'V' => &lists.verbs,
                b'X' => &lists.auxiliaries,
                _ => &lists.adverbs,
            };
            self.push(one_of(list, random));
        }
    }

    /// Replaces `into` by so many characters from this place on.
    fn cut(&self, begin: usize, length: usize, into: &mut String) {
        into.clear();
        let begin = begin + 1;
        let mark = self.marks[begin / STRIDE];
        let mut at = (mark >> SKIPPED_BITS) as usize;
        let mut skipped = (mark & ((1 << SKIPPED_BITS) - 1)) as usize + begin % STRIDE;
        let piece = |at: usize| self.pieces[usize::from(self.indexes[at])].as_str();
        while skipped >= piece(at).len() {
            skipped -= piece(at).len();
            at += 1;
        }
        while into.len() < length {
            let rest = &piece(at)[skipped..];
            into.push_str(&rest[..rest.len().min(length - into.len())]);
            skipped = 0;
            at += 1;
        }
    }
}

impl Lists {
    fn new(pieces: &mut Vec<String>) -> Self {
        let lists = Distributions::static_default();
        let mut index = |piece: String| {
            let at = pieces.iter().position(|known| *known == piece).unwrap_or_else(|| {
                pieces.push(piece);
                pieces.len() - 1
            });
            // There are 217 of them; a test cuts every part out of the text.
            at as u8
        };
        let (the, comma) = (index(" the".into()), index(",".into()));
        let mut words = |list: &'static Distribution| weighted(list, |word| index(format!(" {word}")));
        Self {
            sentences: weighted(lists.grammar(), |syntax| syntax),
            noun_phrases: weighted(lists.noun_phrase(), |syntax| syntax),
            verb_phrases: weighted(lists.verb_phrase(), |syntax| syntax),
            nouns: words(lists.nouns()),
            adjectives: words(lists.adjectives()),
            adverbs: words(lists.adverbs()),
            articles: words(lists.articles()),
            verbs: words(lists.verbs()),
            auxiliaries: words(lists.auxiliaries()),
            prepositions: words(lists.prepositions()),
            terminators: weighted(lists.terminators(), |mark| index(mark.to_owned())),
            the,
            comma,
        }
    }
}

/// The values of a list, each as often as it weighs.
fn weighted<T: Copy>(list: &'static Distribution, mut of: impl FnMut(&'static str) -> T) -> Vec<T> {
    let mut all = Vec::new();
    for (at, value) in list.get_values().iter().enumerate() {
        // Weights are sums of those so far.
        let end = usize::try_from(list.get_weight(at)).unwrap_or_default();
        let value = of(value);
        all.resize(all.len().max(end), value);
    }
    all
}

fn one_of<T: Copy>(list: &[T], random: &mut RowRandomInt) -> T {
    list[random.next_int(0, list.len() as i32 - 1) as usize]
}

/// Draws the comments of a table.
#[derive(Debug)]
pub(crate) struct Comments {
    text: &'static CommentText,
    seed: i64,
    /// Random numbers that each row of the generator has.
    numbers: i32,
    shortest: i32,
    longest: i32,
    random: RowRandomInt,
    /// The row that the random numbers are those of, and whether some of them have been drawn.
    row: i64,
    has_begun: bool,
}

impl Comments {
    /// Those of a table.
    pub(crate) fn new(text: &'static CommentText, table: Name) -> Self {
        // dbgen's seed, the mean length, and comments for each row of the generator: orders have lines, parts have suppliers.
        let (seed, mean, each) = match table {
            Name::Region => (1_500_869_201, 72.0, 1),
            Name::Nation => (606_179_079, 72.0, 1),
            Name::Supplier => (1_341_315_363, 63.0, 1),
            Name::Part => (804_159_733, 14.0, 1),
            Name::PartSupp => (1_961_692_154, 124.0, 4),
            Name::Customer => (1_335_826_707, 73.0, 1),
            Name::Orders => (276_090_261, 49.0, 1),
            Name::LineItem => (1_095_462_486, 27.0, 7),
        };
        let numbers = 2 * each;
        Self {
            text,
            seed,
            numbers,
            shortest: (mean * 0.4) as i32,
            longest: (mean * 1.6) as i32,
            random: RowRandomInt::new(seed, numbers),
            row: 0,
            has_begun: false,
        }
    }

    /// Replaces `into` by the next comment of a row of the generator; rows are counted from 0.
    pub(crate) fn next(&mut self, row: i64, into: &mut String) {
        if row < self.row {
            self.random = RowRandomInt::new(self.seed, self.numbers);
            (self.row, self.has_begun) = (0, false);
        }
        if row > self.row {
            // What is left of a row that has begun is passed over first.
            self.random.advance_rows(row - self.row - i64::from(self.has_begun));
            self.row = row;
        }
        self.has_begun = true;
        let begin = self.random.next_int(0, self.text.size - self.longest);
        let length = self.random.next_int(self.shortest, self.longest);
        self.text.cut(begin as usize, length as usize, into);
    }
}

/// The place of an order among all, from 0: of each 32 keys the first eight are used, and they begin with 1.
pub(crate) const fn row_of_order(key: i64) -> i64 {
    ((key >> 5) << 3 | key & 7) - 1
}

/// Puts what the generator has written over a supplier's comment into it: praise or complaints, in the only words with capitals.
pub(crate) fn with_review(comment: &mut String, generated: &str) {
    for words in ["Customer ", "Complaints", "Recommends"] {
        if let Some(at) = generated.find(words) {
            comment.replace_range(at..at + words.len(), words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_the_generator() {
        let size = 200_000;
        let (ours, theirs) = (CommentText::new(size), TextPool::new(size, Distributions::static_default()));
        assert!(ours.pieces.len() < 256 && ours.pieces.iter().all(|piece| piece.len() < 1 << SKIPPED_BITS));
        let mut cut = String::new();
        ours.cut(0, size as usize, &mut cut);
        assert_eq!(cut, theirs.text(0, size));
        for begin in (0..size - 300).step_by(97) {
            ours.cut(begin as usize, 200, &mut cut);
            assert_eq!(cut, theirs.text(begin, begin + 200));
        }
        assert!(ours.indexes.len() * 6 < size as usize, "{}", ours.indexes.len());
    }

    mod machine {
        use super::*;

        #[test]
        #[ignore = "takes 400 MB: cargo xtask machine"]
        fn the_whole_text_is_that_of_the_generator() {
            let (ours, theirs) = (CommentText::shared(), TextPool::get_or_init_default());
            let mut cut = String::new();
            for begin in (0..SIZE).step_by(1 << 20) {
                let length = (SIZE - begin).min(1 << 20);
                ours.cut(begin as usize, length as usize, &mut cut);
                assert!(cut == theirs.text(begin, begin + length), "at {begin}");
            }
            assert!(ours.indexes.capacity() + 4 * ours.marks.capacity() < 60_000_000);
        }
    }
}
