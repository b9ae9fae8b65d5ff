use memory_reporter::MallocSizeOf;

// The code that `prost-build` writes if build.rs contains this line:
// config.type_attribute(".", "#[derive(memory_reporter::MallocSizeOf)]");
#[derive(Clone, PartialEq, prost::Message, MallocSizeOf)]
pub struct Document {
    #[prost(string, tag = "1")]
    pub title: String,
    #[prost(message, repeated, tag = "2")]
    pub pages: Vec<Page>,
    #[prost(map = "string, int64", tag = "3")]
    pub words: std::collections::HashMap<String, i64>,
}

#[derive(Clone, PartialEq, prost::Message, MallocSizeOf)]
pub struct Page {
    #[prost(bytes = "vec", tag = "1")]
    pub image: Vec<u8>,
}
