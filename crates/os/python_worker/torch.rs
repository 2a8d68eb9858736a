//! Tensors of PyTorch, for modules that use it: made of karve's memory and copied back.
//!
//! PyTorch is imported by the candidate, so its functions are taken afterward. Only functions that
//! are implemented in C are used: one that was replaced by Python code is refused.

use crate::api::{Attempt, PyRef, clear_error, refused};
use crate::dlpack::{self, DlElement, DlPlace, ShownTensor};
use std::ffi::{CStr, CString};

/// The functions of PyTorch.
pub(crate) struct TorchCalls {
    module: PyRef,
    /// The type of tensors.
    pub(crate) tensor: PyRef,
    from_dlpack: PyRef,
    to_dlpack: PyRef,
    view: PyRef,
    reshape: PyRef,
    copy: PyRef,
    detach: PyRef,
    /// Where karve's memory is.
    place: DlPlace,
}

/// A type of elements.
pub(crate) struct TorchElement {
    /// The object that stands for it.
    pub(crate) object: PyRef,
    /// The same for DLPack, if this version of PyTorch takes it.
    dlpack: Option<DlElement>,
}

/// The types of what is implemented in C: functions, and methods of types; and that of modules.
pub(crate) struct NativeKinds {
    pub(crate) function: PyRef,
    pub(crate) method: PyRef,
    pub(crate) module: PyRef,
}

impl NativeKinds {
    /// A function of a module. A method of another object has the same type, and may call Python
    /// code: `__getitem__` of a dictionary with `__missing__`, for example.
    fn function_of(&self, module: &PyRef, name: &CStr) -> Attempt<PyRef> {
        let found = module.attribute(name)?;
        let is_function = module.kind()?.is(&self.module)
            && found.kind()?.is(&self.function)
            && found.attribute(c"__self__")?.is(module)
            && found.attribute(c"__name__")?.text().as_deref() == name.to_str().ok();
        match is_function {
            true => Ok(found),
            false => refused("replaced"),
        }
    }
}

impl TorchCalls {
    /// The functions, if the module has been imported.
    pub(crate) fn find(kinds: &NativeKinds, place: DlPlace) -> Attempt<Option<Self>> {
        let Some(module) = PyRef::module(c"torch").filter(|module| !module.is_none()) else {
            return Ok(None);
        };
        let inner = module.attribute(c"_C")?;
        let base = inner.attribute_if_any(c"TensorBase");
        let base = base.map_or_else(|| inner.attribute(c"_TensorBase"), Ok)?;
        let method = |name: &CStr| {
            let found = base.attribute(name)?;
            match found.kind()?.is(&kinds.method) {
                true => Ok(found),
                false => refused("replaced"),
            }
        };
        Ok(Some(Self {
            tensor: module.attribute(c"Tensor")?,
            from_dlpack: kinds.function_of(&inner, c"_from_dlpack")?,
            to_dlpack: kinds.function_of(&inner, c"_to_dlpack")?,
            view: method(c"view")?,
            reshape: method(c"reshape")?,
            copy: method(c"copy_")?,
            detach: method(c"detach")?,
            place,
            module,
        }))
    }

    /// Makes a stream the current one; an external one has its address for an id.
    pub(crate) fn use_stream(&self, kinds: &NativeKinds, stream: u64) -> Attempt<()> {
        if stream == 0 {
            return Ok(());
        }
        let set = kinds.function_of(&self.module.attribute(c"_C")?, c"_cuda_setStream")?;
        let (first_device, on_gpu) = (PyRef::of_integer(0)?, PyRef::of_integer(1)?);
        let id = PyRef::of_integer(stream as i64)?;
        set.call_with(&[&id, &first_device, &on_gpu]).map(drop)
    }

    /// A type of elements, which an old version may lack.
    pub(crate) fn element(&self, own: &str, bytes: u8, name: &str) -> Attempt<TorchElement> {
        let name = CString::new(name).unwrap_or_default();
        let Some(object) = self.module.attribute_if_any(&name) else {
            return refused("element");
        };
        let mut probe = [0_u8; 16];
        let taken = |element: &DlElement| {
            let probed = dlpack::capsule(probe.as_mut_ptr(), &[1], *element, DlPlace::Host);
            let tensor = probed.and_then(|probed| self.from_dlpack.call_with(&[&probed])).ok();
            let dtype = tensor.and_then(|tensor| tensor.attribute_if_any(c"dtype"));
            clear_error();
            dtype.is_some_and(|dtype| dtype.is(&object))
        };
        let dlpack = DlElement::of(own, bytes).filter(taken);
        Ok(TorchElement { object, dlpack })
    }

    /// Memory as a tensor.
    pub(crate) fn tensor(
        &self,
        data: *mut u8,
        shape: &[isize],
        bytes: usize,
        element: &TorchElement,
    ) -> Attempt<PyRef> {
        if let Some(of) = element.dlpack {
            return self.made(data, shape, of);
        }
        let Some(of_bytes) = DlElement::of("u8", 1) else {
            return refused("element");
        };
        let flat = self.made(data, &[bytes as isize], of_bytes)?;
        let typed = self.view.call_with(&[&flat, &element.object])?;
        let extents = shape.iter().map(|n| PyRef::of_integer(*n as i64));
        let extents = PyRef::tuple(extents.collect::<Attempt<_>>()?)?;
        self.reshape.call_with(&[&typed, &extents])
    }

    fn made(&self, data: *mut u8, shape: &[isize], element: DlElement) -> Attempt<PyRef> {
        self.from_dlpack.call_with(&[&dlpack::capsule(data, shape, element, self.place)?])
    }

    /// The memory of a result, if it is where karve's is and can be shown.
    pub(crate) fn shown(&self, result: &PyRef, element: &TorchElement) -> Option<ShownTensor> {
        let of = element.dlpack?;
        let shown = self.to_dlpack.call_with(&[result]).ok();
        clear_error();
        ShownTensor::of(shown?, of, self.place)
    }

    /// Copies a result of any kind to its place.
    pub(crate) fn copy(&self, home: &PyRef, result: &PyRef) -> Attempt<()> {
        let detached = self.detach.call_with(&[result])?;
        self.copy.call_with(&[home, &detached]).map(drop)
    }
}
