//! For the mirrors of the derive: the check that a field of a foreign type has the type of the mirror's field.

/// `Self` is `T`. A type parameter that is only bound by it takes no coercion: a `&Vec<u8>` is no `&[u8]`.
#[diagnostic::on_unimplemented(
    message = "the mirrored type's field is a `{Self}`, but the mirror's field is a `{T}`",
    label = "not a `{T}`",
    note = "give the mirror's field the type of the mirrored type's field"
)]
pub trait IsOfType<T: ?Sized> {
    fn as_type(&self) -> &T;
}

impl<T: ?Sized> IsOfType<T> for T {
    #[inline]
    fn as_type(&self) -> &T {
        self
    }
}

/// The reference to a field of a foreign type, which has the type `T` of the mirror's field.
#[inline]
pub fn as_mirror_type<T: ?Sized, F: IsOfType<T> + ?Sized>(field: &F) -> &T {
    field.as_type()
}
