//! `ordered-float`: exact; in place.

use ordered_float::{NotNan, OrderedFloat};

use crate::measure::impls::plain::plain;
use crate::measure::impls::wrapper::parts;

plain!([T] NotNan<T>);
parts!(OrderedFloat<T>, [T], self, self.0);
