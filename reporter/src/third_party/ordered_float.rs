//! `ordered-float`: exact; in place.

use ordered_float::{NotNan, OrderedFloat};

use crate::impls::plain::plain;
use crate::impls::wrapper::parts;

plain!([T] NotNan<T>);
parts!(OrderedFloat<T>, [T], self, self.0);
