//! Files that appear whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use about_memory::temporary;
use memory_report::new_file::Readers;

/// Writes a temporary file in the same folder and renames it, so that no reader sees a partial file. A path that is not
/// a plain file, such as `/dev/null` or a pipe, is written directly. If the file is private, only this user may read
/// it; otherwise the umask decides who may read it. On platforms without file modes, the rights of the folder decide.
pub(super) fn write<E: From<io::Error>>(
    path: &Path,
    private: bool,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), E>,
) -> Result<(), E> {
    let readers = if private { Readers::User } else { Readers::Umask };
    temporary::write_new(path, readers, |file| {
        let mut file = BufWriter::with_capacity(1 << 16, file);
        write(&mut file)?;
        Ok(file.flush()?)
    })
}
