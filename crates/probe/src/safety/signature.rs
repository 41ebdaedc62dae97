//! Identifies the content of a device by its first and last bytes.

/// Bytes examined at the beginning; half as many are examined at the end. The first uberblocks of ZFS and the
/// superblocks of older arrays are the farthest.
pub(super) const HEAD: u64 = 256 << 10;
/// The same for a file, of which a job may have thousands: up to the superblock of btrfs.
pub(super) const FILE: u64 = 72 << 10;

/// A constant at an offset.
struct Magic {
    at: usize,
    is: &'static [u8],
    what: &'static str,
}

const fn magic(at: usize, is: &'static [u8], what: &'static str) -> Magic {
    Magic { at, is, what }
}

/// Constants long enough not to occur by chance. The on-disk formats are from the programs' documentation.
const HEADS: &[Magic] = &[
    magic(512, b"EFI PART", "a GPT partition table"),
    magic(4096, b"EFI PART", "a GPT partition table"),
    magic(0, b"XFSB\0\0", "an XFS filesystem"),
    magic(0x1_0040, b"_BHRfS_M", "a btrfs filesystem"),
    magic(0, b"LUKS\xba\xbe", "an encrypted volume (LUKS)"),
    magic(0x4000, b"SKUL\xba\xbe", "an encrypted volume (LUKS)"),
    magic(4086, b"SWAPSPACE2", "swap space"),
    magic(65_526, b"SWAPSPACE2", "swap space"),
    magic(0, b"\xfc\x4e\x2b\xa9\x01\0\0\0", "a member of an array (mdraid)"),
    magic(4096, b"\xfc\x4e\x2b\xa9\x01\0\0\0", "a member of an array (mdraid)"),
    magic(1024, b"\x10\x20\xf5\xf2", "an F2FS filesystem"),
    magic(3, b"NTFS    ", "an NTFS filesystem"),
    magic(3, b"EXFAT   ", "an exFAT filesystem"),
    magic(82, b"FAT32   ", "a FAT filesystem"),
    magic(54, b"FAT1", "a FAT filesystem"),
    magic(32_769, b"CD001", "an ISO 9660 filesystem"),
    magic(4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", "a bcache device"),
    magic(4120, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", "a bcachefs filesystem"),
    magic(0, b"bluestore block device", "a Ceph OSD"),
    magic(32, b"ORCLDISK", "an Oracle ASM disk"),
    magic(0, b"dmvdo001", "a VDO volume"),
    magic(0, b"hsqs", "a squashfs filesystem"),
    magic(0, b"QFI\xfb\0\0\0", "a disk image (qcow2)"),
    magic(0, b"KDMV", "a disk image (VMDK)"),
    magic(0, b"conectix", "a disk image (VHD)"),
    magic(0, b"vhdxfile", "a disk image (VHDX)"),
    magic(0, b"SQLite format 3\0", "an SQLite database"),
];

/// Identifies the content of a device or file of `size` bytes by its beginning and end; `None` if it is not
/// recognised. `tail` extends to the end.
pub(super) fn find_signature(head: &[u8], tail: &[u8], size: u64) -> Option<&'static str> {
    let known = HEADS.iter().find(|magic| has(head, magic.at, magic.is)).map(|magic| magic.what);
    known
        .or_else(|| is_ext(head).then_some("an ext2, ext3 or ext4 filesystem"))
        .or_else(|| is_lvm(head).then_some("a physical volume of LVM"))
        .or_else(|| is_zfs(head).then_some("a member of a ZFS pool"))
        .or_else(|| at_end(tail, size))
        // Last, since the boot sectors of several filesystems look like one.
        .or_else(|| is_partition_table(head).then_some("an MBR partition table"))
}

fn has(bytes: &[u8], at: usize, what: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(what))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The two bytes of the magic number alone would sometimes occur in random data, so the fields around it must be valid.
fn is_ext(head: &[u8]) -> bool {
    let block = 1024;
    let plausible = word(head, block + 24).is_some_and(|log| log <= 6)
        && word(head, block + 76).is_some_and(|revision| revision <= 1)
        && word(head, block + 32).is_some_and(|blocks| blocks > 0);
    has(head, block + 56, &[0x53, 0xef]) && plausible
}

fn is_lvm(head: &[u8]) -> bool {
    (0..4).any(|sector| has(head, sector * 512, b"LABELONE") && has(head, sector * 512 + 24, b"LVM2"))
}

fn is_zfs(head: &[u8]) -> bool {
    const UBERBLOCK: [[u8; 8]; 2] = [0x00ba_b10c_u64.to_le_bytes(), 0x00ba_b10c_u64.to_be_bytes()];
    let ring = head.get(128 << 10..).unwrap_or(&[]);
    ring.chunks(1024).any(|slot| UBERBLOCK.iter().any(|magic| slot.starts_with(magic)))
}

/// Four entries with valid flags, at least one of them in use.
fn is_partition_table(head: &[u8]) -> bool {
    let Some(table) = head.get(446..510) else { return false };
    let entries = || table.chunks_exact(16);
    let flag = |entry: &[u8]| matches!(entry.first(), Some(0 | 0x80));
    let used = |entry: &[u8]| entry.get(4).is_some_and(|kind| *kind != 0) && word(entry, 12) > Some(0);
    has(head, 510, &[0x55, 0xaa]) && entries().all(flag) && entries().any(used)
}

fn at_end(tail: &[u8], size: u64) -> Option<&'static str> {
    let begin = size.saturating_sub(tail.len() as u64);
    let found = |at: u64, what: &[u8]| at >= begin && has(tail, (at - begin) as usize, what);
    if [512, 4096].into_iter().any(|sector| size > sector && found(size - sector, b"EFI PART")) {
        return Some("the backup of a GPT partition table");
    }
    // Version 1.0: 8 KiB before the end, rounded down to 4 KiB. 0.90: the second-last whole 64 KiB.
    let newer = (size / 512).saturating_sub(16) / 8 * 8 * 512;
    let older = (size & !0xffff).saturating_sub(0x1_0000);
    let member =
        newer > 0 && found(newer, b"\xfc\x4e\x2b\xa9") || older > 0 && found(older, b"\xfc\x4e\x2b\xa9");
    member.then_some("a member of an array (mdraid)")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 8 << 20;

    fn with(at: usize, what: &[u8]) -> Option<&'static str> {
        let mut head = vec![0; HEAD as usize];
        head[at..at + what.len()].copy_from_slice(what);
        find_signature(&head, &vec![0; HEAD as usize / 2], SIZE)
    }

    #[test]
    fn signatures_are_known_by_their_places() {
        for magic in HEADS {
            assert_eq!(with(magic.at, magic.is), Some(magic.what));
        }
        assert_eq!(
            with(512, b"LABELONE\x01\0\0\0\0\0\0\0abcd \0\0\0LVM2 001"),
            Some("a physical volume of LVM")
        );
        assert_eq!(with((128 << 10) + 4096, &0x00ba_b10c_u64.to_be_bytes()), Some("a member of a ZFS pool"));
        assert_eq!(with(7, b"XFSB\0\0"), None);
        assert_eq!(find_signature(&[], &[], 0), None);
    }

    #[test]
    fn short_signatures_need_what_stands_around_them() {
        let mut superblock = vec![0; 128];
        superblock[56..58].copy_from_slice(&[0x53, 0xef]);
        assert_eq!(with(1024, &superblock), None, "no blocks");
        superblock[32] = 8;
        assert_eq!(with(1024, &superblock), Some("an ext2, ext3 or ext4 filesystem"));
        superblock[24] = 9;
        assert_eq!(with(1024, &superblock), None, "blocks of half a megabyte");
        let mut table = vec![0; 66];
        table[64..].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(with(446, &table), None, "no entry in use");
        (table[4], table[12]) = (0x83, 9);
        assert_eq!(with(446, &table), Some("an MBR partition table"));
        table[0] = 0x17;
        assert_eq!(with(446, &table), None, "no flag of an entry");
    }

    #[test]
    fn the_end_is_looked_at() {
        let at = |from_end: u64, what: &[u8]| {
            let mut tail = vec![0; HEAD as usize / 2];
            let at = (HEAD / 2 - from_end) as usize;
            tail[at..at + what.len()].copy_from_slice(what);
            find_signature(&vec![0; HEAD as usize], &tail, SIZE)
        };
        assert_eq!(at(512, b"EFI PART"), Some("the backup of a GPT partition table"));
        assert_eq!(at(8192, b"\xfc\x4e\x2b\xa9"), Some("a member of an array (mdraid)"));
        assert_eq!(at(0x1_0000, b"\xfc\x4e\x2b\xa9"), Some("a member of an array (mdraid)"));
        assert_eq!(at(600, b"EFI PART"), None);
    }

    #[test]
    fn random_data_is_hardly_ever_taken_for_something() {
        let mut random = kelvin_measure::Random::part(1, 2, 3);
        for _ in 0..40 {
            let head: Vec<u8> = (0..HEAD / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
            assert_eq!(find_signature(&head, &head[..HEAD as usize / 2], SIZE), None);
        }
    }
}
