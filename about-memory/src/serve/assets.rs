//! The page, without data and token. `npm run build` makes it from `ui/src/serve`.

use crate::http::{HttpResponse, ResponseBody};

const PAGE: &[u8] = include_bytes!("../../assets/serve.html");
const SCRIPT: &[u8] = include_bytes!("../../assets/serve.js");
const STYLE: &[u8] = include_bytes!("../../assets/serve.css");

pub(super) fn asset(path: &str) -> Option<HttpResponse> {
    let (media_type, bytes) = match path {
        "/" => ("text/html; charset=utf-8", PAGE),
        "/serve.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "/serve.css" => ("text/css; charset=utf-8", STYLE),
        _ => return None,
    };
    Some(HttpResponse { media_type, body: ResponseBody::Static(bytes) })
}
