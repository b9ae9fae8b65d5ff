use memory_reporter::engine_abi::{EachFrame, EngineTable, FrameRow, connect};

fn frames(each: EachFrame) {
    each(std::ptr::null_mut(), &FrameRow::in_file("function", "file", 1));
}

fn engine(table: &'static EngineTable) {
    connect(table);
}

fn main() {}
