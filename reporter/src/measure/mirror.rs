//! For mirrors of the derive: checks that a field of a foreign type has the same type as the mirror's field.

/// Implemented only if `Self` is `T`. A type parameter with only this bound allows no coercion, such as from
/// `&Vec<u8>` to `&[u8]`.
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

/// Returns the reference to a field of a foreign type. `T` is the type of the mirror's field; other types do not
/// compile.
#[inline]
pub fn as_mirror_type<T: ?Sized, F: IsOfType<T> + ?Sized>(field: &F) -> &T {
    field.as_type()
}
