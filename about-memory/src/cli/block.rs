//! `about-memory block`.

use clap::Args;

use super::Failure;

#[derive(Args)]
pub(crate) struct Block {}

impl Block {
    pub(super) fn run(self) -> Result<(), Failure> {
        Ok(())
    }
}
