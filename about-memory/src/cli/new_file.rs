//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::Builder;

/// Writes a temporary file in the same folder and renames it, so that nobody sees half a file. Writes directly to
/// anything but a plain file, such as `/dev/null` or a pipe. If the file is private, only this user may read it; else
/// the umask decides. Where files have no mode, the folder decides.
#[cfg_attr(not(unix), allow(unused_variables, reason = "files have no mode"))]
pub(super) fn write<E: From<io::Error>>(
    path: &Path,
    private: bool,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), E>,
) -> Result<(), E> {
    if path.exists() && !fs::metadata(path)?.is_file() {
        let mut file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        write(&mut file)?;
        return Ok(file.flush()?);
    }
    let mut beside = Builder::new();
    beside.prefix(".about-memory-").suffix(".incomplete");
    #[cfg(unix)]
    if !private {
        beside.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    // The name is random. Dropping the file removes it, unless it has got its name.
    let mut file = BufWriter::with_capacity(1 << 16, beside.tempfile_in(folder)?);
    write(&mut file)?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.persist(path).map_err(io::Error::from)?;
    Ok(())
}
