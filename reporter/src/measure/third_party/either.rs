//! `either`: exact; in place.

use either::Either;

use crate::measure::impls::wrapper::variants;

variants!(Either<Left, Right>, [Left, Right], Either::Left, Either::Right;);
