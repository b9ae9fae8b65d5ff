//! The page, which `npm run build` makes of `ui/src/serve`. It has neither data nor token.

use super::response::{HttpResponse, ResponseBody};

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
