//! A file that redirects a browser to the page.

use std::io::{self, Write as _};
use std::path::Path;

use tempfile::{Builder, NamedTempFile, TempPath};

/// Writes a page that redirects to `url` into a new file in `folder`. Only this user can read the file. So other users
/// can read the token neither in the list of processes nor in the file. Dropping the path removes the file.
///
/// # Errors
///
/// Returns an error if the file cannot be written.
pub fn redirect_file(folder: &Path, url: &str) -> io::Result<TempPath> {
    new_file(folder, url).map(NamedTempFile::into_temp_path)
}

fn new_file(folder: &Path, url: &str) -> io::Result<NamedTempFile> {
    // `tempfile` makes files with the mode 0600.
    let mut file = Builder::new().prefix("about-memory-").suffix(".html").tempfile_in(folder)?;
    file.write_all(page(url).as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// Lets the file of [`redirect_file`] redirect to another address. A browser that reads the file at this moment gets
/// the old or the new page. If the file was removed, this function makes it again.
///
/// # Errors
///
/// Returns an error if the file cannot be written.
pub fn change_redirect(file: &Path, url: &str) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::NotFound)?;
    new_file(folder, url)?.persist(file).map(drop).map_err(|error| error.error)
}

fn page(url: &str) -> String {
    let url = url.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!(
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\">\n<title>about:memory</title>\n\
         <p><a href=\"{url}\">about:memory</a></p>\n"
    )
}
