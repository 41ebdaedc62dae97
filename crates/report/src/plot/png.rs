//! Charts as PNG, for where SVG cannot go.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::Chart;
use crate::{Error, Result};

/// Dots for each unit of the picture: sharp on screens of today and in print.
const SCALE: f32 = 2.0;

/// Paints charts with the fonts of this machine, which are looked for once.
pub struct Painter {
    options: Options<'static>,
}

impl Painter {
    /// With the machine's fonts.
    ///
    /// # Errors
    /// When it has none: a chart without its words says nothing.
    pub fn new() -> Result<Self> {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        let families =
            || fonts.faces().filter_map(|face| face.families.first()).map(|family| family.0.clone());
        let plain = families()
            .find(|name| name.contains("Sans") && !name.contains("Mono"))
            .or_else(|| families().next());
        let Some(plain) = plain else {
            return Err(Error::Plot(
                "no fonts on this machine, so that a PNG would have no words: install one (fonts-dejavu-core), or take the SVG"
                    .into(),
            ));
        };
        fonts.set_sans_serif_family(plain);
        Ok(Self { options: Options { fontdb: Arc::new(fonts), ..Options::default() } })
    }

    /// The chart as a PNG file.
    ///
    /// # Errors
    /// When the picture is too large for the memory.
    pub fn png(&self, chart: &Chart) -> Result<Vec<u8>> {
        let failed = |why: String| Error::Plot(format!("{} cannot be painted: {why}", chart.name));
        let tree = Tree::from_str(&chart.svg, &self.options).map_err(|error| failed(error.to_string()))?;
        let (width, height) = (tree.size().width() * SCALE, tree.size().height() * SCALE);
        let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
            .ok_or_else(|| failed(format!("{width} × {height} dots are too many")))?;
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| failed(error.to_string()))
    }
}
