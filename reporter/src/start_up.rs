//! What happens before `main`: the program finds a preloaded engine of DMD, and listens if `ABOUT_MEMORY` asks for
//! it.

use crate::platform::{call_before_main, runs_with_other_rights};
use crate::{collect, engine, live};

call_before_main!(start);

fn start() {
    if engine::find_preloaded(collect::program()) && !runs_with_other_rights() {
        live::start_up();
    }
}
