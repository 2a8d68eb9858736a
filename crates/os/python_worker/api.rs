//! The part of Python's C interface that the worker uses, with references that count themselves.
//!
//! All functions are found in the process that loads the library, so one build works for every
//! CPython, linked statically or not. Nothing here looks into an object: layouts differ.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::ptr::{self, NonNull};

/// An object of the interpreter.
#[repr(C)]
pub(crate) struct RawObject {
    private: [u8; 0],
}

/// The memory of an object, as the buffer protocol describes it.
#[repr(C)]
pub(crate) struct RawBuffer {
    pub(crate) data: *mut u8,
    object: *mut RawObject,
    bytes: isize,
    pub(crate) item_bytes: isize,
    read_only: c_int,
    pub(crate) rank: c_int,
    format: *const c_char,
    shape: *const isize,
    strides: *const isize,
    suboffsets: *const isize,
    private: *mut c_void,
}

/// The flags of a buffer with its format, extents and strides.
const BUFFER_IN_FULL: c_int = 0x4 | 0x8 | 0x10;

/// The flag of a view that can be written to.
const VIEW_WRITE: c_int = 0x200;

type Raw = *mut RawObject;

unsafe extern "C" {
    static mut PyTuple_Type: RawObject;
    static mut PyList_Type: RawObject;
    static mut _Py_NoneStruct: RawObject;
    fn Py_IncRef(object: Raw);
    fn Py_DecRef(object: Raw);
    fn PyObject_Call(callable: Raw, args: Raw, named: Raw) -> Raw;
    fn PyObject_Type(object: Raw) -> Raw;
    fn PyObject_Str(object: Raw) -> Raw;
    fn PyObject_GetAttrString(object: Raw, name: *const c_char) -> Raw;
    fn PyObject_GetBuffer(object: Raw, buffer: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(buffer: *mut RawBuffer);
    fn PyCallable_Check(object: Raw) -> c_int;
    fn PyTuple_New(n: isize) -> Raw;
    fn PyTuple_SetItem(tuple: Raw, at: isize, item: Raw) -> c_int;
    fn PyTuple_Size(tuple: Raw) -> isize;
    fn PyTuple_GetItem(tuple: Raw, at: isize) -> Raw;
    fn PyList_Size(list: Raw) -> isize;
    fn PyList_GetItem(list: Raw, at: isize) -> Raw;
    fn PyLong_FromLongLong(value: c_longlong) -> Raw;
    fn PyLong_AsLongLong(object: Raw) -> c_longlong;
    fn PyFloat_FromDouble(value: f64) -> Raw;
    fn PyUnicode_AsUTF8AndSize(object: Raw, bytes: *mut isize) -> *const c_char;
    fn PyMemoryView_FromMemory(from: *mut c_char, bytes: isize, flags: c_int) -> Raw;
    fn PyCapsule_New(content: *mut c_void, name: *const c_char, end: *mut c_void) -> Raw;
    fn PyCapsule_GetPointer(capsule: Raw, name: *const c_char) -> *mut c_void;
    fn PyImport_GetModuleDict() -> Raw;
    fn PyDict_GetItemString(dict: Raw, key: *const c_char) -> Raw;
    fn PyErr_Occurred() -> Raw;
    fn PyErr_Clear();
    fn PyErr_Fetch(class: *mut Raw, value: *mut Raw, traceback: *mut Raw);
    fn PyErr_NormalizeException(class: *mut Raw, value: *mut Raw, traceback: *mut Raw);
    fn PyException_SetTraceback(value: Raw, traceback: Raw) -> c_int;
}

/// Why something could not be done.
#[derive(Debug)]
pub(crate) enum PythonFailure {
    /// An exception is set in the interpreter.
    Raised,
    /// A code of worker_text.rs with its arguments.
    Refused(String),
}

/// A value, or why there is none.
pub(crate) type Attempt<T> = Result<T, PythonFailure>;

/// A failure with a code.
pub(crate) fn refused<T>(code: impl Into<String>) -> Attempt<T> {
    Err(PythonFailure::Refused(code.into()))
}

/// A reference to an object.
#[derive(Debug)]
pub(crate) struct PyRef(NonNull<RawObject>);

impl Clone for PyRef {
    fn clone(&self) -> Self {
        // SAFETY: the object is alive as long as this reference.
        unsafe { Py_IncRef(self.raw()) };
        Self(self.0)
    }
}

impl Drop for PyRef {
    fn drop(&mut self) {
        // SAFETY: this reference is counted, and given up once.
        unsafe { Py_DecRef(self.raw()) };
    }
}

// SAFETY (all calls below): the interpreter's lock is held as long as the worker runs, objects are
// alive as long as their references, and results are checked before they are used.
impl PyRef {
    /// A reference that the interpreter has just counted for us.
    fn new(raw: Raw) -> Attempt<Self> {
        NonNull::new(raw).map(Self).ok_or(PythonFailure::Raised)
    }

    /// A reference to an object that somebody else holds.
    pub(crate) fn borrowed(raw: Raw) -> Option<Self> {
        let object = NonNull::new(raw)?;
        unsafe { Py_IncRef(raw) };
        Some(Self(object))
    }

    fn raw(&self) -> Raw {
        self.0.as_ptr()
    }

    /// Whether both are the same object.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    pub(crate) fn is_none(&self) -> bool {
        ptr::eq(self.raw(), &raw const _Py_NoneStruct)
    }

    pub(crate) fn is_callable(&self) -> bool {
        unsafe { PyCallable_Check(self.raw()) == 1 }
    }

    /// Calls it.
    pub(crate) fn call(&self, args: &Self) -> Attempt<Self> {
        Self::new(unsafe { PyObject_Call(self.raw(), args.raw(), ptr::null_mut()) })
    }

    /// Calls it with these arguments.
    pub(crate) fn call_with(&self, args: &[&Self]) -> Attempt<Self> {
        self.call(&Self::tuple(args.iter().map(|arg| (*arg).clone()).collect())?)
    }

    /// Its type.
    pub(crate) fn kind(&self) -> Attempt<Self> {
        Self::new(unsafe { PyObject_Type(self.raw()) })
    }

    pub(crate) fn attribute(&self, name: &CStr) -> Attempt<Self> {
        Self::new(unsafe { PyObject_GetAttrString(self.raw(), name.as_ptr()) })
    }

    /// The same, if it is there.
    pub(crate) fn attribute_if_any(&self, name: &CStr) -> Option<Self> {
        let found = self.attribute(name).ok();
        clear_error();
        found
    }

    /// An entry of a dictionary, if it is there.
    pub(crate) fn entry(&self, key: &CStr) -> Option<Self> {
        Self::borrowed(unsafe { PyDict_GetItemString(self.raw(), key.as_ptr()) })
    }

    /// A module that has been imported.
    pub(crate) fn module(name: &CStr) -> Option<Self> {
        Self::borrowed(unsafe { PyImport_GetModuleDict() })?.entry(name)
    }

    /// Its text, as `str` makes it.
    pub(crate) fn text(&self) -> Option<String> {
        let text = Self::new(unsafe { PyObject_Str(self.raw()) }).ok()?;
        let mut bytes = 0;
        let from = unsafe { PyUnicode_AsUTF8AndSize(text.raw(), &mut bytes) };
        if from.is_null() {
            return None;
        }
        let part = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes as usize) };
        Some(String::from_utf8_lossy(part).into_owned())
    }

    /// The items of a tuple or a list; none for anything else.
    pub(crate) fn items(&self) -> Attempt<Option<Vec<Self>>> {
        let kind = self.kind()?;
        let item = |get: unsafe extern "C" fn(Raw, isize) -> Raw| {
            move |at| Self::borrowed(unsafe { get(self.raw(), at) }).ok_or(PythonFailure::Raised)
        };
        if ptr::eq(kind.raw(), &raw const PyTuple_Type) {
            let n = unsafe { PyTuple_Size(self.raw()) };
            return (0..n).map(item(PyTuple_GetItem)).collect::<Attempt<_>>().map(Some);
        }
        if ptr::eq(kind.raw(), &raw const PyList_Type) {
            let n = unsafe { PyList_Size(self.raw()) };
            return (0..n).map(item(PyList_GetItem)).collect::<Attempt<_>>().map(Some);
        }
        Ok(None)
    }

    /// The extents in a tuple, or in an object that derives from it.
    pub(crate) fn extents(&self) -> Attempt<Vec<isize>> {
        let n = unsafe { PyTuple_Size(self.raw()) };
        if n < 0 {
            return Err(PythonFailure::Raised);
        }
        let extent = |at| {
            let item = Self::borrowed(unsafe { PyTuple_GetItem(self.raw(), at) });
            Ok(item.ok_or(PythonFailure::Raised)?.integer()? as isize)
        };
        (0..n).map(extent).collect()
    }

    pub(crate) fn integer(&self) -> Attempt<i64> {
        let value = unsafe { PyLong_AsLongLong(self.raw()) };
        match value == -1 && !unsafe { PyErr_Occurred() }.is_null() {
            true => Err(PythonFailure::Raised),
            false => Ok(value),
        }
    }

    pub(crate) fn tuple(items: Vec<Self>) -> Attempt<Self> {
        let tuple = Self::new(unsafe { PyTuple_New(items.len() as isize) })?;
        for (at, item) in items.into_iter().enumerate() {
            let raw = item.raw();
            // The tuple takes over the reference.
            std::mem::forget(item);
            unsafe { PyTuple_SetItem(tuple.raw(), at as isize, raw) };
        }
        Ok(tuple)
    }

    pub(crate) fn of_integer(value: i64) -> Attempt<Self> {
        Self::new(unsafe { PyLong_FromLongLong(value) })
    }

    pub(crate) fn of_float(value: f64) -> Attempt<Self> {
        Self::new(unsafe { PyFloat_FromDouble(value) })
    }

    /// A view of memory that is never unmapped, which seems to be writable.
    pub(crate) fn of_memory(from: *mut u8, bytes: usize) -> Attempt<Self> {
        Self::new(unsafe { PyMemoryView_FromMemory(from.cast(), bytes as isize, VIEW_WRITE) })
    }

    /// A capsule with a name that is never freed.
    pub(crate) fn of_capsule(content: *mut c_void, name: &'static CStr) -> Attempt<Self> {
        Self::new(unsafe { PyCapsule_New(content, name.as_ptr(), ptr::null_mut()) })
    }

    /// What a capsule of this name holds.
    pub(crate) fn capsule_content(&self, name: &CStr) -> Option<NonNull<c_void>> {
        let content = NonNull::new(unsafe { PyCapsule_GetPointer(self.raw(), name.as_ptr()) });
        if content.is_none() {
            clear_error();
        }
        content
    }

    /// Its memory, if it shows that.
    pub(crate) fn buffer(&self) -> Option<HeldBuffer> {
        let mut held = HeldBuffer(unsafe { std::mem::zeroed() });
        if unsafe { PyObject_GetBuffer(self.raw(), &mut held.0, BUFFER_IN_FULL) } != 0 {
            held.0.object = ptr::null_mut();
            clear_error();
            return None;
        }
        Some(held)
    }
}

/// The memory of an object, which stays there until this is dropped.
pub(crate) struct HeldBuffer(RawBuffer);

impl HeldBuffer {
    pub(crate) fn data(&self) -> *const u8 {
        self.0.data
    }

    pub(crate) fn item_bytes(&self) -> isize {
        self.0.item_bytes
    }

    /// The format of an element, as the module `struct` writes it.
    pub(crate) fn format(&self) -> &[u8] {
        match self.0.format.is_null() {
            true => b"B",
            false => unsafe { CStr::from_ptr(self.0.format) }.to_bytes(),
        }
    }

    pub(crate) fn shape(&self) -> &[isize] {
        self.numbers(self.0.shape)
    }

    pub(crate) fn strides(&self) -> &[isize] {
        self.numbers(self.0.strides)
    }

    fn numbers(&self, from: *const isize) -> &[isize] {
        match from.is_null() {
            true => &[],
            false => unsafe { std::slice::from_raw_parts(from, self.0.rank as usize) },
        }
    }
}

impl Drop for HeldBuffer {
    fn drop(&mut self) {
        if !self.0.object.is_null() {
            unsafe { PyBuffer_Release(&mut self.0) };
        }
    }
}

/// Forgets the exception that is set.
pub(crate) fn clear_error() {
    unsafe { PyErr_Clear() };
}

/// Takes the exception that is set.
pub(crate) fn take_error() -> Option<PyRef> {
    let (mut class, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    unsafe {
        PyErr_Fetch(&mut class, &mut value, &mut traceback);
        PyErr_NormalizeException(&mut class, &mut value, &mut traceback);
        if !value.is_null() && !traceback.is_null() {
            PyException_SetTraceback(value, traceback);
        }
        for unused in [class, traceback] {
            if !unused.is_null() {
                Py_DecRef(unused);
            }
        }
    }
    NonNull::new(value).map(PyRef)
}
