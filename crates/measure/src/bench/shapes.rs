//! The models of the paper by name: shapes with random weights.

use anyhow::{Result, bail};
use primer_model::synthetic;
use primer_plan::shape::Shape;

/// A name, its layers, its width and its heads.
pub const SHAPES: [(&str, usize, usize, usize); 6] = [
    ("bert-tiny", 3, 768, 12),
    ("bert-small", 6, 768, 12),
    ("bert-base", 12, 768, 12),
    ("bert-medium", 12, 1024, 16),
    ("bert-large", 24, 1024, 16),
    ("minilm", 6, 384, 12),
];

/// Returns the shape of a name, with that many layers if fewer are to be measured.
///
/// # Errors
/// If there is no such shape, or it has fewer layers.
pub fn shape(name: &str, layers: Option<usize>) -> Result<Shape> {
    let Some((_, all, width, heads)) = SHAPES.into_iter().find(|shape| shape.0 == name) else {
        let names = SHAPES.map(|shape| shape.0).join(", ");
        bail!("{name} is neither a model directory nor one of the shapes {names}");
    };
    let layers = measured(name, all, layers)?;
    Ok(synthetic::bert_shape(layers, width, heads))
}

/// Returns how many of all layers of a model are measured.
///
/// # Errors
/// If it has fewer.
pub fn measured(name: &str, all: usize, layers: Option<usize>) -> Result<usize> {
    let layers = layers.unwrap_or(all);
    if layers == 0 || layers > all {
        bail!("{name} has {all} layers, so 1 to {all} of them can be measured, not {layers}");
    }
    Ok(layers)
}

/// Returns the layers of a named shape.
pub fn layers(name: &str) -> Option<usize> {
    let found = SHAPES.into_iter().find(|shape| shape.0 == name);
    found.map(|shape| shape.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_papers_shapes() {
        let base = shape("bert-base", None).unwrap();
        assert_eq!((base.layers, base.hidden, base.heads), (12, 768, 12));
        assert_eq!(base.ffn, 3072);
        assert_eq!(shape("bert-large", Some(1)).unwrap().layers, 1);
        let error = shape("bert-huge", None).unwrap_err().to_string();
        assert!(
            error.contains("bert-huge") && error.contains("minilm"),
            "{error}"
        );
        let error = shape("bert-tiny", Some(4)).unwrap_err().to_string();
        assert_eq!(
            error,
            "bert-tiny has 3 layers, so 1 to 3 of them can be measured, not 4"
        );
    }
}
