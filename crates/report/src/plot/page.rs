//! All charts on one self-contained HTML page.

use std::fmt::Write as _;

use super::Chart;
use crate::chart::escaped;

const STYLE: &str = "body{margin:0;background:#f4f4f1;color:#1c1f23;font:16px/1.5 'DejaVu Sans',system-ui,sans-serif}\
    main{max-width:1000px;margin:0 auto;padding:20px}h1{font-size:1.5rem}figure{margin:0 0 22px;background:#fff;border:1px solid \
    #dcdfe3;border-radius:8px;padding:10px;overflow-x:auto}svg{display:block;width:100%;min-width:640px;height:auto}\
    nav{columns:2;font-size:.9rem;margin-bottom:22px}nav a{display:block;color:#0b5fa5}p{color:#565d66;font-size:.9rem}\
    @media print{figure{break-inside:avoid}}@media(max-width:640px){nav{columns:1}}";

/// The page; `notes` are printed on it.
pub fn page(title: &str, charts: &[Chart], notes: &[String]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{0}</title><style>{STYLE}</style></head><body><main><h1>{0}</h1>\n",
        escaped(title)
    );
    for note in notes {
        let _ = writeln!(out, "<p>{}</p>", escaped(note));
    }
    if charts.len() > 2 {
        out.push_str("<nav>");
        for chart in charts {
            let _ = write!(out, "<a href=\"#{}\">{}</a>", chart.name, escaped(&chart.title));
        }
        out.push_str("</nav>\n");
    }
    for chart in charts {
        let _ = writeln!(out, "<figure id=\"{}\">{}</figure>", chart.name, chart.svg);
    }
    out.push_str("</main></body></html>\n");
    out
}
