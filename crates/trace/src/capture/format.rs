//! Where the fields of an event are, as `events/*/*/format` of tracefs says; the kernel moves them between versions.

/// A field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    offset: usize,
    size: usize,
}

/// The fields of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    /// The number that begins each of its records.
    pub id: u16,
    fields: Vec<Field>,
}

/// A field's place within a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldLocation {
    offset: usize,
    size: usize,
}

impl FieldLocation {
    /// The bytes of the field; empty when the record is too short.
    pub fn bytes(self, record: &[u8]) -> &[u8] {
        record.get(self.offset..self.offset.saturating_add(self.size)).unwrap_or_default()
    }

    /// The number of the field in this machine's byte order: of 1, 2, 4 or 8 bytes.
    pub fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record);
        Some(match bytes.len() {
            1 => u64::from(*bytes.first()?),
            2 => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// The text of the field, up to its first zero byte.
    pub fn text(self, record: &[u8]) -> &[u8] {
        let bytes = self.bytes(record);
        bytes.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

impl EventFormat {
    /// Reads the text of a `format` file. None if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields = text.lines().filter_map(field).collect();
        Some(Self { id, fields })
    }

    /// Where a field is.
    pub fn place(&self, name: &str) -> Option<FieldLocation> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some(FieldLocation { offset: field.offset, size: field.size })
    }
}

/// A line such as `\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;`.
fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let name = declaration.split_whitespace().last()?;
    let name = name.split('[').next()?.trim_start_matches('*').to_owned();
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            _ => {}
        }
    }
    Some(Field { name, offset: offset?, size: size? })
}

/// Where the parts of a page of the ring buffer are, as `events/header_page` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFormat {
    /// Bytes of a page with its header.
    pub size: usize,
    pub(super) timestamp: FieldLocation,
    pub(super) commit: FieldLocation,
    pub(super) data: usize,
}

impl PageFormat {
    /// Reads the text of `events/header_page`. None if it is none, or a form that is not known.
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Vec<Field> = text.lines().filter_map(field).collect();
        let find = |name: &str| fields.iter().find(|field| field.name == name);
        let place =
            |name: &str| find(name).map(|field| FieldLocation { offset: field.offset, size: field.size });
        let data = find("data")?;
        let size = data.offset.checked_add(data.size)?;
        // A sub-buffer is a power of two of pages; whatever else this says is not a page.
        (256..=1 << 24).contains(&size).then_some(Self {
            size,
            timestamp: place("timestamp")?,
            commit: place("commit")?,
            data: data.offset,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    pub(in super::super) const ISSUE: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\nprint fmt: \"%d\"\n";

    pub(in super::super) const COMPLETE: &str = "name: block_rq_complete\nID: 2107\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:int error;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\nprint fmt: \"%d\"\n";

    #[test]
    fn fields_are_found_by_name() {
        let format = EventFormat::parse(ISSUE).unwrap();
        assert_eq!(format.id, 2104);
        assert_eq!(format.place("rwbs"), Some(FieldLocation { offset: 34, size: 10 }));
        assert_eq!(format.place("cmd"), Some(FieldLocation { offset: 60, size: 4 }));
        assert_eq!(format.place("absent"), None);
        assert_eq!(EventFormat::parse("no event"), None);
        let page = PageFormat::parse(HEADER_PAGE).unwrap();
        assert_eq!((page.size, page.data), (4096, 16));
        assert_eq!(PageFormat::parse(ISSUE), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(ID:[0-9]{0,6}\n)?(\tfield:\\PC{0,20};\toffset:[0-9]{0,25};\tsize:[0-9]{0,25};\n){0,5}", record: Vec<u8>) {
            if let Some(format) = EventFormat::parse(&text) {
                for field in &format.fields {
                    let place = format.place(&field.name).unwrap();
                    let _ = (place.number(&record), place.text(&record));
                }
            }
            let _ = PageFormat::parse(&text);
        }
    }
}
