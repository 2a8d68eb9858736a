//! Tensors as DLPack describes them: PyTorch makes one of karve's memory and shows its own, without
//! copying.

use crate::api::{Attempt, PyRef};
use std::ffi::{CStr, c_void};

/// The name of what nobody has taken over yet.
const FRESH: &CStr = c"dltensor";

/// Where memory is, in the list of devices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DlPlace {
    Host = 1,
    Device = 2,
}

/// A type of elements.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct DlElement {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut u8,
    device: i32,
    device_number: i32,
    rank: i32,
    element: DlElement,
    shape: *const i64,
    strides: *const i64,
    offset: u64,
}

#[repr(C)]
struct DlManaged {
    tensor: DlTensor,
    context: *mut c_void,
    release: Option<unsafe extern "C" fn(*mut DlManaged)>,
}

/// A description that lives until PyTorch releases it, with the extents that it points to.
struct OwnedDescription {
    managed: DlManaged,
    shape: Vec<i64>,
}

impl DlElement {
    /// The type that karve gives this name, if DLPack has it in all versions.
    pub(crate) fn of(name: &str, bytes: u8) -> Option<Self> {
        let code = match name {
            "f8e4m3" | "f8e5m2" => return None,
            "bf16" => 4,
            "bool" => 6,
            name if name.starts_with('f') => 2,
            name if name.starts_with('u') => 1,
            _ => 0,
        };
        Some(Self { code, bits: 8 * bytes, lanes: 1 })
    }
}

/// A capsule that describes memory which is never unmapped.
pub(crate) fn capsule(
    data: *mut u8,
    shape: &[isize],
    element: DlElement,
    place: DlPlace,
) -> Attempt<PyRef> {
    let mut owned = Box::new(OwnedDescription {
        shape: shape.iter().map(|n| *n as i64).collect(),
        managed: DlManaged {
            tensor: DlTensor {
                data,
                device: place as i32,
                device_number: 0,
                rank: shape.len() as i32,
                element,
                shape: std::ptr::null(),
                strides: std::ptr::null(),
                offset: 0,
            },
            context: std::ptr::null_mut(),
            release: Some(release),
        },
    });
    owned.managed.tensor.shape = owned.shape.as_ptr();
    let owned = Box::into_raw(owned);
    // SAFETY: the description was just made, and lives until it is released.
    unsafe {
        (*owned).managed.context = owned.cast();
        PyRef::of_capsule((&raw mut (*owned).managed).cast(), FRESH)
    }
}

/// Ends a description.
unsafe extern "C" fn release(managed: *mut DlManaged) {
    // SAFETY: PyTorch releases what `capsule` made, and once.
    unsafe { drop(Box::from_raw((*managed).context.cast::<OwnedDescription>())) };
}

/// The memory of a tensor.
pub(crate) struct ShownTensor {
    pub(crate) data: *const u8,
    pub(crate) shape: Vec<isize>,
    /// In bytes.
    pub(crate) strides: Vec<isize>,
    /// What keeps it alive.
    _capsule: PyRef,
}

impl ShownTensor {
    /// What a capsule describes, if that is in this place and has this type of elements.
    pub(crate) fn of(capsule: PyRef, element: DlElement, place: DlPlace) -> Option<Self> {
        let managed = capsule.capsule_content(FRESH)?.cast::<DlManaged>();
        // SAFETY: PyTorch made the description, and it lives as long as the capsule.
        unsafe {
            let tensor = &(*managed.as_ptr()).tensor;
            if tensor.device != place as i32 || tensor.element != element {
                return None;
            }
            let numbers = |from: *const i64| {
                let numbers = match tensor.rank {
                    0 => &[],
                    rank => std::slice::from_raw_parts(from, rank as usize),
                };
                numbers.iter().map(|n| *n as isize).collect::<Vec<isize>>()
            };
            let item = isize::from(element.bits / 8);
            let shape = numbers(tensor.shape);
            let strides = match tensor.strides.is_null() {
                true => dense_strides(&shape),
                false => numbers(tensor.strides),
            };
            Some(Self {
                data: tensor.data.wrapping_add(tensor.offset as usize),
                shape,
                strides: strides.into_iter().map(|stride| stride * item).collect(),
                _capsule: capsule,
            })
        }
    }
}

/// The strides of elements that lie next to each other.
fn dense_strides(shape: &[isize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at];
    }
    strides
}
