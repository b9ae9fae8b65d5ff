//! What happens before `main`: the program finds a preloaded engine of DMD, and listens if `ABOUT_MEMORY` asks for
//! it.

use crate::platform::{call_before_main, runs_with_other_rights};
use crate::{collect, engine_abi, live};

call_before_main!(start);

fn start() {
    if engine_abi::connect_preloaded(collect::run_reporters) && !runs_with_other_rights() {
        live::start_up();
    }
}
