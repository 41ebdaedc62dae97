//! Options of a mounted filesystem.

use std::path::Path;
use std::process::{Command, Stdio};

use kelvin_host::Mount;

use super::level::{mount_options, mount_point};

/// The current options of the filesystem mounted at this directory, in the form of `mount -o`; those of the
/// filesystem and of the mount.
pub(crate) fn options(directory: &str) -> Result<String, String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    find(&text, directory).ok_or_else(|| format!("no filesystem is mounted at {directory}"))
}

/// The last mount at a directory is the one in effect.
fn find(mountinfo: &str, directory: &str) -> Option<String> {
    let mount = Mount::all(mountinfo).into_iter().rfind(|mount| mount.point == Path::new(directory))?;
    let mut all = mount.options;
    for option in mount.filesystem_options {
        // The mount's ro or rw takes precedence here.
        if !all.contains(&option) && !["ro", "rw"].contains(&option.as_str()) {
            all.push(option);
        }
    }
    Some(all.join(","))
}

/// Remounts the filesystem with these options.
pub(crate) fn remount(directory: &str, options: &str) -> Result<(), String> {
    mount_point(directory)?;
    mount_options(options)?;
    let output = Command::new("mount")
        .args(["-o", &format!("remount,{options}"), "--", directory])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("mount cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("mount -o remount,{options} {directory}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Whether every option in `wanted` is in effect. `defaults` and the kernel's defaults are not listed in `present`;
/// an option that replaced its opposite is in effect when the opposite is not listed.
pub(crate) fn holds(present: &str, wanted: &str) -> bool {
    let present: Vec<&str> = present.split(',').collect();
    wanted.split(',').all(|option| {
        let unlisted = ["defaults", "atime", "strictatime", "async", "suid", "dev", "exec"].contains(&option);
        let opposite = match option {
            "atime" | "strictatime" => &["noatime", "relatime"][..],
            "suid" => &["nosuid"],
            "dev" => &["nodev"],
            "exec" => &["noexec"],
            "async" => &["sync"],
            _ => &[],
        };
        present.contains(&option) || unlisted && !opposite.iter().any(|other| present.contains(other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_by_place() {
        let text = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
                    30 22 0:5 / /mnt/a\\040b rw,noatime shared:7 - xfs /dev/vdb rw,attr2,noquota\n\
                    31 22 0:6 / /mnt/a\\040b ro,noatime - xfs /dev/vdc rw,attr2\n";
        assert_eq!(find(text, "/").unwrap(), "rw,relatime,discard");
        assert_eq!(find(text, "/mnt/a b").unwrap(), "ro,noatime,attr2");
        assert_eq!(find(text, "/mnt"), None);
        assert!(holds("rw,noatime,attr2", "noatime") && !holds("rw,relatime", "noatime"));
        assert!(holds("rw", "strictatime") && !holds("rw,noatime", "atime"));
    }
}
