//! Which product of a kernel's sizes is the length of a tensor, from how far calls reached into it.

use std::ops::RangeInclusive;

/// Most factors of a shape.
const RANK_MAX: usize = 3;

/// One call: the value of every size, and between how many and how many elements it touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedExtent {
    /// The values of the sizes, in their order.
    pub sizes: Vec<u64>,
    /// The elements: memory is watched in steps, so the exact number is not known.
    pub elements: RangeInclusive<u64>,
}

/// The shape that explains all calls, as indices of sizes; the simplest one if there are several.
/// An empty shape is a single element. `None` if no product of at most three sizes does.
pub fn fit_shape(calls: &[TouchedExtent]) -> Option<Vec<usize>> {
    let n_sizes = calls.first()?.sizes.len();
    let explains = |shape: &Vec<usize>| {
        calls.iter().all(|call| {
            let mut factors = shape.iter().map(|size| call.sizes.get(*size).copied());
            let product = factors.try_fold(1_u64, |all, one| all.checked_mul(one?));
            product.is_some_and(|product| call.elements.contains(&product))
        })
    };
    let mut shapes = vec![Vec::new()];
    for _ in 0..=RANK_MAX {
        if let Some(found) = shapes.iter().find(|shape| explains(shape)) {
            return Some(found.clone());
        }
        let longer = |shape: &Vec<usize>| {
            let last = shape.last().copied().unwrap_or(0);
            let shape = shape.clone();
            (last..n_sizes).map(move |next| [shape.clone(), vec![next]].concat())
        };
        shapes = shapes.iter().flat_map(longer).collect();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a watcher in steps of 16 elements sees of a tensor.
    fn seen(sizes: &[u64], elements: u64) -> TouchedExtent {
        let steps = elements.div_ceil(16);
        TouchedExtent { sizes: sizes.to_vec(), elements: (steps - 1) * 16 + 1..=steps * 16 }
    }

    const SIZES: [[u64; 3]; 2] = [[53, 71, 97], [211, 307, 149]];

    #[test]
    fn vectors_matrices_and_single_elements_are_told_apart() {
        let shapes: [&[usize]; 7] = [&[], &[0], &[1], &[0, 1], &[1, 1], &[0, 2], &[0, 1, 2]];
        for shape in shapes {
            let product = |sizes: &[u64; 3]| shape.iter().map(|size| sizes[*size]).product();
            let calls: Vec<_> = SIZES.iter().map(|sizes| seen(sizes, product(sizes))).collect();
            assert_eq!(fit_shape(&calls).as_deref(), Some(shape));
        }
    }

    #[test]
    fn lengths_that_are_no_product_have_no_shape() {
        let calls: Vec<_> = SIZES.iter().map(|s| seen(s, s[0] * s[1] + 40 * s[2])).collect();
        assert_eq!(fit_shape(&calls), None);
        assert_eq!(fit_shape(&[]), None);
    }

    proptest! {
        #[test]
        fn what_is_found_explains_every_call(
            calls in prop::collection::vec((1_u64..900, 1_u64..900, 1_u64..900_000), 1..5)
        ) {
            let calls: Vec<_> = calls.iter().map(|(n, m, e)| seen(&[*n, *m], *e)).collect();
            if let Some(shape) = fit_shape(&calls) {
                for call in &calls {
                    let product: u64 = shape.iter().map(|size| call.sizes[*size]).product();
                    prop_assert!(call.elements.contains(&product));
                }
            }
        }
    }
}
