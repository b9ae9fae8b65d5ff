//! Runs before `main`: finds a preloaded engine of DMD, and listens if `ABOUT_MEMORY` requests it.

use crate::platform::call_before_main;
use crate::{collect, engine_abi};

call_before_main!(start);

fn start() {
    let _may_listen = engine_abi::connect_preloaded(collect::run_reporters);
    #[cfg(feature = "live")]
    if _may_listen && !crate::platform::runs_with_other_rights() {
        crate::live::start_up();
    }
}
