//! Protected targets are refused: files that other processes use, and devices that are mounted or contain data. Devices
//! are loop devices created here, where that is allowed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kelvin_probe::safety::{check, check_with};

const SIZE: u64 = 16 << 20;

fn refusal(path: &Path, confirmed: &[PathBuf]) -> String {
    check(path, true, confirmed).err().map(|error| error.to_string()).unwrap_or_default()
}

/// Runs a program of the system; false if it is missing or fails.
fn works(program: &str, arguments: &[&Path]) -> bool {
    let done = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

/// A loop device over a file; detached at the end.
struct Loop(PathBuf);

impl Loop {
    fn over(image: &Path) -> Option<Self> {
        let made = Command::new("losetup").args(["-f", "--show"]).arg(image).output().ok()?;
        let name = String::from_utf8(made.stdout).ok()?;
        made.status.success().then(|| Self(name.trim().into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        works("losetup", &[Path::new("-d"), &self.0]);
    }
}

/// A filesystem that is mounted; unmounted at the end.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        works("umount", &[&self.0]);
    }
}

#[test]
fn files_are_refused_that_others_use_or_that_are_more_than_data() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (plain, missing, data) = (path("plain"), path("missing"), path("data"));
    fs::write(&plain, vec![7; 100_000]).unwrap();
    fs::write(&data, b"SQLite format 3\0 and so on").unwrap();
    assert_eq!(refusal(&plain, &[]), "");
    assert_eq!(refusal(&missing, &[]), "");
    assert!(refusal(&data, &[]).contains("holds an SQLite database"), "{}", refusal(&data, &[]));
    check(&data, false, &[]).unwrap();
    let link = path("link");
    symlink(&data, &link).unwrap();
    assert_eq!(refusal(&data, &[link]), "", "confirmed by another name of it");
    assert_ne!(refusal(&data, std::slice::from_ref(&plain)), "");

    let server = path("server");
    fs::create_dir_all(server.join("base")).unwrap();
    fs::write(server.join("PG_VERSION"), "17\n").unwrap();
    fs::write(server.join("postmaster.pid"), format!("{}\n", std::process::id())).unwrap();
    fs::write(server.join("base/1"), [1; 8192]).unwrap();
    assert!(refusal(&server.join("base/1"), &[]).contains("running PostgreSQL server"));

    let used = path("used");
    fs::write(&used, [1; 8192]).unwrap();
    let mut writer = Command::new("sh")
        .args(["-c", "exec 3>>\"$0\"; echo ready; exec sleep 20"])
        .arg(&used)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(writer.stdout.as_mut().unwrap(), &mut ready).unwrap();
    // The list of files that other processes have open is cached for a moment.
    std::thread::sleep(std::time::Duration::from_millis(250));
    let message = refusal(&used, &[]);
    let confirmed = refusal(&used, std::slice::from_ref(&used));
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert!(message.contains("is open for writing by sleep"), "{message}");
    assert!(message.ends_with(&format!("add `--i-know-it-destroys {}`", used.display())), "{message}");
    assert_eq!(confirmed, "");
    assert_eq!(fs::read(&used).unwrap(), [1; 8192], "only looked at");
}

#[test]
fn character_devices_are_refused_but_for_harmless_ones() {
    assert_eq!(refusal(Path::new("/dev/null"), &[]), "");
    assert_eq!(refusal(Path::new("/dev/zero"), &[]), "");
    assert!(refusal(Path::new("/dev/tty"), &[]).contains("is a character device"));
}

#[test]
fn devices_are_refused_until_they_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    File::create(&image).unwrap().set_len(SIZE).unwrap();
    let Some(device) = Loop::over(&image) else { return };
    let name = device.0.as_path();
    assert_eq!(refusal(name, &[]), "", "nothing but zeros");
    assert!(refusal(&image, &[]).contains("is the disk image behind"), "{}", refusal(&image, &[]));

    if works("mkswap", &[name]) {
        assert!(refusal(name, &[]).contains("holds swap space"), "{}", refusal(name, &[]));
    }
    if !works("mkfs.ext4", &[Path::new("-q"), Path::new("-F"), name]) {
        return;
    }
    let message = refusal(name, &[]);
    assert!(message.contains("holds an ext2, ext3 or ext4 filesystem"), "{message}");
    let link = directory.path().join("by-id");
    symlink(name, &link).unwrap();
    assert_eq!(refusal(name, &[link]), "", "named through a link");
    assert_ne!(refusal(name, &[PathBuf::from("/dev/null"), image.clone()]), "", "its image is not itself");

    let point = directory.path().join("point");
    fs::create_dir(&point).unwrap();
    if !works("mount", &[name, &point]) {
        return;
    }
    let mounted = Mounted(point.clone());
    let confirmed = [name.to_owned()];
    for path in [name, &image] {
        let message = refusal(path, &[name.to_owned(), image.clone()]);
        assert!(message.contains(&format!("is mounted at {}", point.display())), "{message}");
    }
    assert!(check_with(name, true, &[], true).is_err(), "mounted and not named");
    check_with(name, true, &confirmed, true).unwrap();
    check_with(name, false, &[], false).unwrap();
    drop(mounted);
    check(name, true, &confirmed).unwrap();
}
