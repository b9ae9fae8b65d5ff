//! Runs code before `main`.

/// Makes every program that links this crate call a function before `main`.
macro_rules! call_before_main {
    ($function:path) => {
        const _: () = {
            extern "C" fn call() {
                $function();
            }

            #[used]
            #[allow(unsafe_code, reason = "the loader calls the functions in this section")]
            #[unsafe(link_section = ".init_array")]
            static CALL: extern "C" fn() = call;
        };
    };
}

pub(crate) use call_before_main;
