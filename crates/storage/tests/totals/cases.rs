//! Random jobs: combinations of sizes, counts, offsets, files, patterns and verification of fio's manual.

use kelvin_measure::Random;

/// A job, or a writer and a verifier of its data, as lines of a job file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Case {
    /// Bytes of a file that exists before, `data` in the job's directory.
    pub(crate) there: Option<u64>,
    /// Options of the job.
    pub(crate) lines: Vec<(&'static str, String)>,
    /// A second job after it, on the same file.
    pub(crate) after: Option<Vec<(&'static str, String)>>,
}

/// The values that must be equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exact {
    /// I/Os of all directions together.
    pub(crate) ios: bool,
    /// Bytes of all directions together; else they differ by less than an I/O for each worker and pass.
    pub(crate) bytes: bool,
    /// Each direction separately; otherwise only their sum, since the next direction is drawn.
    pub(crate) directions: bool,
}

impl Case {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.lines.iter().find(|(option, _)| *option == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> Option<u64> {
        let value = self.get(name)?;
        let (digits, unit) = match value.strip_suffix('k') {
            Some(digits) => (digits, 1024),
            None => (value, 1),
        };
        digits.parse().ok().map(|number: u64| number * unit)
    }

    /// The text of its sections, in this directory. The first section has this name, the second the name with a `v`.
    pub(crate) fn text(&self, name: &str, directory: &str) -> String {
        let section = |name: &str, lines: &[(&str, String)]| {
            let lines: Vec<String> =
                lines.iter().map(|(option, value)| format!("{option}={value}\n")).collect();
            format!("[{name}]\nstonewall\nthread=1\ndirectory={directory}\n{}", lines.concat())
        };
        let second = self.after.as_ref().map(|lines| section(&format!("{name}v"), lines));
        section(name, &self.lines) + &second.unwrap_or_default()
    }

    pub(crate) fn exact(&self) -> Exact {
        let rw = self.get("rw").unwrap_or_default();
        let mixed = rw.contains("rw");
        let one_size = !self.draws_lengths() && !self.get("bs").is_some_and(|bs| bs.contains(',') && mixed);
        let drawn_files = self.get("filesize").is_some_and(|size| size.contains('-'));
        let bounded = self.get("number_ios").is_some();
        // Drawn sizes fill a region to its end, but not an amount to its last byte.
        let fills = self.get("io_size").is_none()
            && !(self.get("filesize").is_some() && self.get("size").is_some())
            && !(rw.starts_with("rand") && self.get("norandommap").is_some())
            && self.get("random_distribution").is_none()
            && self.get("file_service_type") != Some("zipf")
            && self.get("percentage_random").is_none()
            && !rw.contains(':')
            && !mixed;
        Exact {
            ios: one_size && !drawn_files,
            bytes: !drawn_files && (one_size || fills && !bounded),
            directions: !mixed,
        }
    }

    /// Each I/O's length is drawn.
    pub(crate) fn draws_lengths(&self) -> bool {
        ["bsrange", "bssplit"].iter().any(|option| self.get(option).is_some())
    }

    /// `size=` in bytes.
    fn size(&self) -> Option<u64> {
        match self.get("size")?.strip_suffix('%') {
            Some(percent) => Some(self.there? * percent.parse::<u64>().ok()? / 100),
            None => self.number("size"),
        }
    }

    /// Every length that an I/O may have is a divisor of `bytes`.
    fn fills(&self, bytes: u64) -> bool {
        let mut lengths = self.get("bs").unwrap_or("4k").split(',');
        let is_divided = |length: &str| {
            let kib = length.trim_end_matches('k').parse::<u64>().unwrap_or(4);
            bytes.is_multiple_of(kib * 1024)
        };
        !self.draws_lengths() && lengths.all(is_divided)
    }

    /// The regions of all files end with a complete block.
    fn has_no_rest(&self) -> bool {
        let files = self.number("nrfiles").unwrap_or(1);
        let whole = self.number("filesize").map_or(self.size().or(self.there), |each| Some(each * files));
        let moved = self.get("offset").is_some_and(|offset| offset.contains('%'));
        whole.is_some_and(|all| all.is_multiple_of(files) && self.fills(all / files)) && !moved
    }

    /// The reason for which fio's totals cannot be compared: docs/job-files.md lists them.
    pub(crate) fn excluded(&self) -> Option<&'static str> {
        let rw = self.get("rw").unwrap_or_default();
        let (random, mixed) = (rw.starts_with("rand"), rw.contains("rw"));
        let (several, region) = (self.more("nrfiles"), self.region());
        let two_lengths = self.get("bs").is_some_and(|bs| bs.contains(','));
        let one_size = !self.draws_lengths() && !two_lengths;
        if random && two_lengths {
            return Some("map in units of one direction");
        }
        if rw.contains(':')
            && (self.is_larger()
                || self.is_moved()
                || self.has("file_append")
                || !random && (several || self.is_part()))
        {
            return Some("holes wrap at the file's end");
        }
        if let Some(step) = self.zone_step() {
            let cut = region.is_some_and(|region| !region.is_multiple_of(step));
            let elsewhere = several || self.is_moved() || self.is_larger() || self.has("file_append");
            if elsewhere || mixed || rw.contains(':') || !one_size || cut {
                return Some("zones in part of a file");
            }
            if random {
                return Some("random zones");
            }
        }
        if self.is_lfsr() && !one_size {
            return Some("lfsr with several lengths");
        }
        if self.is_lfsr() && (several || self.more("numjobs") || self.get("randrepeat") == Some("0")) {
            return Some("lfsr seeded without a random draw");
        }
        let last = self.last_begin();
        let whole = self.number("filesize").or(self.there.filter(|_| !self.has("size")));
        let appended = self.has("file_append") && self.has("filesize") && self.has("filename");
        if self.has("numjobs") && whole.is_some_and(|whole| last >= whole) || self.more("numjobs") && appended
        {
            return Some("clones beyond the end");
        }
        let drawn_size = self.get("filesize").is_some_and(|size| size.contains('-'));
        if drawn_size && self.is_moved() {
            return Some("offset in a file of random size");
        }
        // Other passes and clones find the file longer than the first.
        let others =
            self.more("loops") || self.more("numjobs") || self.has("io_size") || self.draws_lengths();
        let grows = self.there.is_none_or(|there| region.is_some_and(|region| there <= region));
        if self.get("offset").is_some_and(|offset| offset.contains('%')) && grows && others {
            return Some("percentage offset in a growing file");
        }
        let cut = !region.is_some_and(|region| self.fills(region));
        if cut && (self.is_larger() || self.is_lengthened(random)) {
            return Some("an I/O beyond the region");
        }
        if self.has("fill_device") && (self.has("zonesize") || !self.has("size") && !self.has("filesize")) {
            return Some("fills the filesystem");
        }
        let least = self.least_block();
        let percent = self.get("io_size").and_then(|size| size.strip_suffix('%')?.parse::<u64>().ok());
        let before = self.number("filesize").map_or(0, |_| last);
        let room = region.map(|region| region.saturating_sub(before));
        if percent.is_some_and(|percent| room.is_none_or(|room| room * percent < 100 * least)) {
            return Some("less than an I/O");
        }
        let blocks = region.unwrap_or(0) / self.number("nrfiles").unwrap_or(1) / least;
        if self.get("random_distribution").is_some_and(|how| how.starts_with("normal")) && blocks < 20 {
            return Some("normal over few blocks");
        }
        let ring = self.get("ioengine") == Some("io_uring") && self.more("iodepth");
        if ring && self.has("fsync") && self.has("number_ios") {
            return Some("number_ios counts syncs");
        }
        if self.is_asynchronous() && self.more("iodepth") && self.is_uneven() && !self.comes_again(random) {
            return Some("zipf of files with several in flight");
        }
        if self.passes_end_with_size(random) {
            return Some("a pass with several in flight");
        }
        let longer = self.has("filesize") || self.is_larger();
        let is_between = self.size().is_some_and(|size| size < self.largest_block());
        if two_lengths && rw.starts_with("write") && longer && is_between {
            return Some("a size between two lengths");
        }
        self.ends_at_a_draw(random, mixed).or_else(|| self.excluded_verifying(rw))
    }

    /// A clone may find the file longer than its region, since another clone's region ends after it.
    fn is_lengthened(&self, random: bool) -> bool {
        let clones = self.more("numjobs") && self.number("offset_increment").is_some_and(|bytes| bytes > 0);
        let one_file = self.has("filename") && !self.has("filesize");
        let reaches_behind = !random || self.is_partly_random() || self.has("random_distribution");
        clones && one_file && reaches_behind && !self.draws_lengths()
    }

    /// io_uring and libaio end a pass at `size` where the other engines continue; the remainder is then shorter than an
    /// I/O, or too short for another pass, or after the appended data.
    fn passes_end_with_size(&self, random: bool) -> bool {
        let again = self.comes_again(random);
        let holes = !random && self.get("rw").is_some_and(|rw| rw.contains(':'));
        let goes_on = again || self.is_part() || self.is_uneven() || holes;
        let (Some(moved), true) = (self.moved(), self.is_asynchronous() && goes_on) else { return false };
        let (append, loops) = (self.has("file_append"), self.more("loops"));
        let Some(io_size) = self.number("io_size").filter(|io_size| *io_size > moved) else {
            return append && loops;
        };
        let writes = self.get("rw").is_some_and(|rw| !rw.contains("read"));
        let missing = io_size % moved.next_multiple_of(self.least_block());
        let is_shorter = self.has("filesize") && self.is_moved();
        let is_less = is_shorter || missing > 0 && missing < self.largest_block();
        loops || !(again && writes) && (append || is_less)
    }

    /// Whether fio's end is random: it ends where a sequence, or a drawn offset, has no room for the next I/O.
    fn ends_at_a_draw(&self, random: bool, mixed: bool) -> Option<&'static str> {
        let rest = !self.has_no_rest();
        let holes = self.get("rw").is_some_and(|rw| rw.contains(':'));
        let larger = self.is_larger() || self.is_moved() || self.is_part();
        let more = self.number("io_size") > self.moved();
        let drawn = if random {
            self.is_partly_random() && (rest || larger || more && !self.comes_again(random))
                || (holes || self.has("random_distribution")) && rest
                || holes && more
        } else {
            holes && (self.draws_lengths() || mixed) || mixed && (more || rest)
        };
        (drawn || self.has("file_append") && self.draws_lengths()).then_some("random end of a pass")
    }

    /// As [`Self::excluded`], for verification.
    fn excluded_verifying(&self, rw: &str) -> Option<&'static str> {
        if !self.has("verify") {
            return None;
        }
        if self.has("io_size") || self.has("number_ios") {
            return Some("limits count verifying reads");
        }
        let random = rw.starts_with("rand");
        let marked_again = random && self.is_uneven() && !self.comes_again(random);
        let ring = self.get("ioengine") == Some("io_uring") && self.more("iodepth");
        let overtaken = ring && self.has("verify_backlog") && (self.comes_again(random) || self.is_uneven());
        if rw.contains(':') || self.is_partly_random() || marked_again || overtaken {
            return Some("fio finds errors in what it wrote");
        }
        let closes = self.number("openfiles").is_some_and(|open| Some(open) < self.number("nrfiles"));
        if self.has("verify_backlog") && closes {
            return Some("verify_backlog with closed files");
        }
        if self.more("numjobs") && self.has("filename") {
            return Some("clones verify one file");
        }
        if self.has("experimental_verify") && self.has("fsync") {
            return Some("experimental_verify with syncs");
        }
        let again = self.more("loops") || self.comes_again(random) || self.get("randrepeat") == Some("0");
        let again = again || self.is_lfsr();
        let redrawn = again || self.is_part() || self.is_moved() || self.more("nrfiles");
        (self.has("experimental_verify") && redrawn).then_some("experimental_verify of repeated blocks")
    }

    pub(crate) fn is_lfsr(&self) -> bool {
        self.get("random_generator") == Some("lfsr")
    }

    /// The first of the given lengths is the shortest.
    fn least_block(&self) -> u64 {
        let text = ["bs", "bsrange", "bssplit"].iter().find_map(|option| self.get(option)).unwrap_or("4k");
        let digits = text.split(|letter: char| !letter.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(4) * 1024
    }

    fn has(&self, option: &str) -> bool {
        self.get(option).is_some()
    }

    fn more(&self, option: &str) -> bool {
        self.number(option).unwrap_or(1) > 1
    }

    /// The bytes per pass, as far as specified, if nothing precedes the regions.
    fn moved(&self) -> Option<u64> {
        let files = self.number("nrfiles").unwrap_or(1);
        let whole = self.number("filesize").map_or(self.size(), |each| Some(each * files));
        [self.size(), whole].into_iter().flatten().min()
    }

    /// The beginning of the last clone.
    fn last_begin(&self) -> u64 {
        let clones = (self.number("numjobs").unwrap_or(1) - 1) * self.number("offset_increment").unwrap_or(0);
        let percent = self.get("offset").and_then(|offset| offset.strip_suffix('%')?.parse::<u64>().ok());
        let offset = match percent {
            Some(percent) => self.there.or(self.region()).unwrap_or(0) * percent / 100,
            None => self.number("offset").unwrap_or(0),
        };
        clones + offset
    }

    /// The length of a file, as far as specified.
    fn region(&self) -> Option<u64> {
        self.number("filesize").or(self.size())
    }

    fn is_larger(&self) -> bool {
        self.there.is_some_and(|there| self.region().is_some_and(|region| there > region))
    }

    fn is_moved(&self) -> bool {
        self.has("offset") || self.has("offset_increment")
    }

    /// `size=` is a part of the files.
    fn is_part(&self) -> bool {
        self.number("filesize").is_some_and(|whole| self.size().is_some_and(|size| size != whole))
    }

    fn is_partly_random(&self) -> bool {
        self.get("percentage_random").is_some_and(|percent| percent != "100")
    }

    /// Blocks may be drawn repeatedly.
    fn comes_again(&self, random: bool) -> bool {
        random && (self.has("norandommap") || self.has("random_distribution"))
    }

    fn is_asynchronous(&self) -> bool {
        matches!(self.get("ioengine"), Some("io_uring" | "libaio"))
    }

    /// A finished file begins again.
    fn is_uneven(&self) -> bool {
        self.get("file_service_type").is_some_and(|how| how.starts_with("zipf"))
    }

    /// The distance between the beginnings of two zones.
    fn zone_step(&self) -> Option<u64> {
        let range = self.number("zonerange").or(self.number("zonesize"))?;
        Some(range + self.number("zoneskip").unwrap_or(0))
    }
}

/// Draws cases.
pub(crate) struct Draw(pub(crate) Random);

impl Draw {
    fn below(&mut self, count: u64) -> u64 {
        self.0.range(0, count as i64 - 1) as u64
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// A case whose totals can be compared.
    pub(crate) fn case(&mut self) -> Case {
        loop {
            let case = self.any();
            if case.excluded().is_none() {
                return case;
            }
        }
    }

    fn any(&mut self) -> Case {
        let mut case = Case::default();
        let block = self.pick(&[1, 2, 4, 4, 4, 8, 12]);
        let rw = self.pattern(block);
        let random = rw.starts_with("rand");
        let mixed = rw.contains("rw");
        let engine = self.pick(&["sync", "psync", "psync", "io_uring", "libaio"]);
        case.lines.push(("ioengine", engine.into()));
        if engine == "io_uring" || engine == "libaio" {
            case.lines.push(("iodepth", self.pick(&[1, 4, 16]).to_string()));
        }
        self.blocks(&mut case, block);
        let named = self.chance(45);
        if named {
            case.lines.push(("filename", "data".into()));
        }
        case.lines.push(("rw", rw.clone()));
        self.sizes(&mut case, block, named);
        self.bounds(&mut case, block);
        if random {
            if self.chance(40) {
                case.lines.push(("norandommap", "1".into()));
            }
            if self.chance(15) {
                case.lines.push(("percentage_random", self.pick(&["0", "30", "80"]).into()));
            }
            if self.chance(10) {
                case.lines.push((
                    "random_distribution",
                    self.pick(&["zipf:1.2", "pareto:0.3", "normal:20"]).into(),
                ));
            } else if self.chance(12) {
                case.lines.push(("random_generator", self.pick(&["tausworthe64", "lfsr"]).into()));
            }
        }
        if mixed && self.chance(60) {
            case.lines.push(("rwmixread", self.pick(&["0", "10", "30", "70", "100"]).into()));
        }
        if self.chance(8) && !named {
            self.zones(&mut case, block);
        }
        self.smaller(&mut case, &rw);
        if self.chance(20)
            && !mixed
            && !rw.contains("read")
            && !case.lines.iter().any(|line| line.0 == "zonesize")
        {
            self.verified(&mut case, named);
        }
        case
    }

    fn pattern(&mut self, block: u64) -> String {
        let mut rw = self
            .pick(&["read", "write", "write", "randread", "randwrite", "randwrite", "rw", "randrw"])
            .to_owned();
        if self.chance(15) {
            if rw.starts_with("rand") {
                rw = format!("{rw}:{}", 1 + self.below(6));
            } else {
                let sign = if self.chance(30) { "-" } else { "" };
                rw = format!("{rw}:{sign}{}k", block * (1 + self.below(5)));
            }
        }
        rw
    }

    fn blocks(&mut self, case: &mut Case, block: u64) {
        let line = match self.below(20) {
            0 | 1 => ("bsrange", format!("{block}k-{}k", block * (1 + self.below(8)))),
            2 | 3 => ("bssplit", format!("{block}k/60:{}k/40", block * (1 + self.below(6)))),
            4 => ("bs", format!("{block}k,{}k", block * (1 + self.below(3)))),
            _ => ("bs", format!("{block}k")),
        };
        case.lines.push(line);
    }

    fn sizes(&mut self, case: &mut Case, block: u64, named: bool) {
        let files = if named || self.chance(60) { 1 } else { 2 + self.below(5) };
        if files > 1 {
            case.lines.push(("nrfiles", files.to_string()));
            if self.chance(50) {
                let how =
                    self.pick(&["roundrobin", "sequential", "random", "zipf", "roundrobin:3", "random:2"]);
                case.lines.push(("file_service_type", how.into()));
            }
            if self.chance(25) {
                case.lines.push(("openfiles", (1 + self.below(files)).to_string()));
            }
        }
        if named && self.chance(60) {
            case.there = Some(block * 1024 * (1 + self.below(150)));
        }
        let blocks = 1 + self.below(120);
        let odd = if self.chance(10) { self.below(block * 1024) } else { 0 };
        let size = blocks * block * 1024 + odd;
        match self.below(20) {
            0..=10 => case.lines.push(("size", size.to_string())),
            11 | 12 => case.lines.push(("filesize", size.to_string())),
            13..=15 => {
                case.lines.push(("filesize", size.to_string()));
                case.lines.push(("size", (block * 1024 * (1 + self.below(200))).to_string()));
            }
            16 => case.lines.push(("filesize", format!("{}k-{}k", block * 4, block * 40))),
            17 if case.there.is_some() => case.lines.push(("size", format!("{}%", 5 + self.below(96)))),
            18 if case.there.is_some() => {}
            _ => case.lines.push(("size", format!("{}k", blocks * block))),
        }
        if self.chance(20) {
            let offset = match self.below(4) {
                0 if case.there.is_some() => format!("{}%", self.below(60)),
                _ => format!("{}k", block * self.below(40)),
            };
            case.lines.push(("offset", offset));
            if self.chance(30) {
                case.lines.push(("offset_align", format!("{}k", block * (1 + self.below(4)))));
            }
        }
        if self.chance(15) {
            case.lines.push(("numjobs", (1 + self.below(4)).to_string()));
            if self.chance(50) {
                case.lines.push(("offset_increment", format!("{}k", block * self.below(30))));
            }
        }
    }

    fn bounds(&mut self, case: &mut Case, block: u64) {
        if self.chance(25) {
            case.lines.push(("loops", (1 + self.below(4)).to_string()));
        }
        if self.chance(20) {
            case.lines.push(("number_ios", (1 + self.below(150)).to_string()));
        }
        if self.chance(25) {
            let amount = match self.below(4) {
                0 => format!("{}%", 10 + self.below(91)),
                1 => (block * 1024 * (1 + self.below(100)) + self.below(block * 1024)).to_string(),
                _ => format!("{}k", block * (1 + self.below(300))),
            };
            case.lines.push(("io_size", amount));
        }
        if self.chance(8) {
            case.lines.push(("fill_device", "1".into()));
        }
    }

    fn zones(&mut self, case: &mut Case, block: u64) {
        // Without it, fio refuses a zonesize that has no zonerange.
        case.lines.push(("zonemode", "strided".into()));
        case.lines.push(("zonesize", format!("{}k", block * (1 + self.below(6)))));
        if self.chance(60) {
            case.lines.push(("zonerange", format!("{}k", block * (1 + self.below(8)))));
        }
        if self.chance(50) {
            case.lines.push(("zoneskip", format!("{}k", block * self.below(5))));
        }
        // Mostly of complete zones, since others are not compared.
        if let Some(step) = case.zone_step().filter(|_| self.chance(80)) {
            case.lines.retain(|(option, _)| *option != "filesize" && *option != "size");
            case.lines.push(("size", (step * (1 + self.below(12))).to_string()));
        }
    }

    /// Adds options that should change no total.
    fn smaller(&mut self, case: &mut Case, rw: &str) {
        let writes = rw.starts_with("write") || rw.starts_with("randwrite");
        for (option, value, only) in [
            ("overwrite", "1", writes),
            ("fallocate", "none", true),
            ("create_on_open", "1", writes),
            ("end_fsync", "1", writes),
            ("fsync", "7", writes),
            ("invalidate", "0", true),
            ("pre_read", "1", !writes),
            ("randrepeat", "0", true),
            ("create_serialize", "0", true),
            ("file_append", "1", writes),
            ("rw_sequencer", "identical", rw.starts_with("rand") && rw.contains(':')),
        ] {
            if only && self.chance(5) {
                case.lines.push((option, value.into()));
            }
        }
    }

    fn verified(&mut self, case: &mut Case, named: bool) {
        let method = self.pick(&["crc32c", "md5", "xxhash", "sha1", "crc64"]);
        let verify = vec![("verify", method.to_owned()), ("verify_state_save", "0".into())];
        case.lines.extend(verify.clone());
        match self.below(4) {
            0 => case.lines.push(("verify_backlog", (1 + self.below(40)).to_string())),
            1 => case.lines.push(("do_verify", "0".into())),
            2 => case.lines.push(("experimental_verify", "1".into())),
            _ => {}
        }
        // Another job verifies all of it, if it was all written.
        let whole = [
            "filesize",
            "number_ios",
            "io_size",
            "offset",
            "numjobs",
            "nrfiles",
            "norandommap",
            "percentage_random",
            "random_distribution",
            "bssplit",
            "bsrange",
        ];
        let plain = case.get("rw").is_some_and(|rw| !rw.contains(':'))
            && whole.iter().all(|option| case.get(option).is_none());
        let size = case.get("size").filter(|size| !size.contains('%')).map(str::to_owned);
        if let (true, true, Some(size), Some(bs)) =
            (plain, named, size, case.get("bs").filter(|bs| !bs.contains(',')))
        {
            let rw = self.pick(&["read", "randread"]);
            let mut after = vec![
                ("filename", "data".to_owned()),
                ("rw", rw.into()),
                ("bs", bs.to_owned()),
                ("size", size),
            ];
            after.extend(verify);
            case.after = Some(after);
        }
    }
}
