//! `ignore_error=EAGAIN,ENOSPC:122`: names and numbers of the kernel's errors.

/// The errors that I/O can end with, by name.
const NAMES: &[(&str, i32)] = &[
    ("EPERM", libc::EPERM),
    ("ENOENT", libc::ENOENT),
    ("EINTR", libc::EINTR),
    ("EIO", libc::EIO),
    ("ENXIO", libc::ENXIO),
    ("E2BIG", libc::E2BIG),
    ("EBADF", libc::EBADF),
    ("EAGAIN", libc::EAGAIN),
    ("EWOULDBLOCK", libc::EWOULDBLOCK),
    ("ENOMEM", libc::ENOMEM),
    ("EACCES", libc::EACCES),
    ("EFAULT", libc::EFAULT),
    ("EBUSY", libc::EBUSY),
    ("EEXIST", libc::EEXIST),
    ("EXDEV", libc::EXDEV),
    ("ENODEV", libc::ENODEV),
    ("ENOTDIR", libc::ENOTDIR),
    ("EISDIR", libc::EISDIR),
    ("EINVAL", libc::EINVAL),
    ("ENFILE", libc::ENFILE),
    ("EMFILE", libc::EMFILE),
    ("ETXTBSY", libc::ETXTBSY),
    ("EFBIG", libc::EFBIG),
    ("ENOSPC", libc::ENOSPC),
    ("ESPIPE", libc::ESPIPE),
    ("EROFS", libc::EROFS),
    ("EPIPE", libc::EPIPE),
    ("EDOM", libc::EDOM),
    ("ERANGE", libc::ERANGE),
    ("ENODATA", libc::ENODATA),
    ("ETIME", libc::ETIME),
    ("ENOLINK", libc::ENOLINK),
    ("EPROTO", libc::EPROTO),
    ("EBADMSG", libc::EBADMSG),
    ("EOVERFLOW", libc::EOVERFLOW),
    ("EILSEQ", libc::EILSEQ),
    ("EOPNOTSUPP", libc::EOPNOTSUPP),
    ("ETIMEDOUT", libc::ETIMEDOUT),
    ("ESTALE", libc::ESTALE),
    ("EREMOTEIO", libc::EREMOTEIO),
    ("EDQUOT", libc::EDQUOT),
    ("ENOMEDIUM", libc::ENOMEDIUM),
    ("ECANCELED", libc::ECANCELED),
];

/// The numbers by what the I/O did: read, write, verify.
pub(crate) fn read(text: &str) -> Result<[Vec<i32>; 3], String> {
    let lists: Vec<&str> = text.split(',').collect();
    if lists.len() > 3 {
        return Err("at most three lists are allowed: for reads, writes and verification".into());
    }
    let mut out: [Vec<i32>; 3] = Default::default();
    for (numbers, list) in out.iter_mut().zip(lists) {
        for error in list.split(':').map(str::trim).filter(|error| !error.is_empty()) {
            numbers.push(number(error)?);
        }
    }
    Ok(out)
}

fn number(text: &str) -> Result<i32, String> {
    if let Some((_, number)) = NAMES.iter().find(|(name, _)| *name == text) {
        return Ok(*number);
    }
    let number = text.parse::<i32>().ok().filter(|number| (1..=4095).contains(number));
    number.ok_or_else(|| format!("{text:?} is not a kernel error: use a name such as EIO or its number"))
}
