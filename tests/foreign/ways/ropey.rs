use memory_reporter::MallocSizeOf;
use ropey::Rope;

#[derive(MallocSizeOf)]
pub struct Editor {
    /// The bytes of the text's buffers with their unused part, without the nodes of the tree. Clones share buffers,
    /// and each clone counts them.
    #[malloc_size_of(stated_by = Rope::capacity)]
    pub text: Rope,
}
