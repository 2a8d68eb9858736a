//! What NVIDIA's management library reports about a GPU, loaded at run time: a reading takes
//! microseconds, so there is one for every block.

use super::cuda::{dlopen, dlsym};
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

const LIBRARY: &CStr = c"libnvidia-ml.so.1";
const RTLD_NOW: c_int = 2;

/// Kinds of clocks, and of sensors.
const CLOCK_SM: c_int = 1;
const CLOCK_MEMORY: c_int = 2;
const SENSOR_GPU: c_int = 0;

/// Bytes of a name.
const NAME_BYTES: usize = 96;

/// A reading.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuReading {
    /// Its name.
    pub name: String,
    /// Its UUID.
    pub id: Option<String>,
    /// The version of its driver.
    pub driver: Option<String>,
    /// The clocks of its processors and of its memory, in MHz.
    pub clocks_mhz: [Option<u32>; 2],
    /// Its temperature in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// The power that it draws, in milliwatts.
    pub power_mw: Option<u32>,
    /// Why its clocks are lower than they could be, as a mask.
    pub reasons: Option<u64>,
}

type Unsigned = unsafe extern "C" fn(*mut c_void, *mut c_uint) -> c_int;
type Kind = unsafe extern "C" fn(*mut c_void, c_int, *mut c_uint) -> c_int;
type Mask = unsafe extern "C" fn(*mut c_void, *mut c_ulonglong) -> c_int;

/// Reads one GPU.
pub struct GpuSensors {
    /// Its handle, as a number: it holds on every thread.
    device: usize,
    name: String,
    id: Option<String>,
    driver: Option<String>,
    clock: Option<Kind>,
    temperature: Option<Kind>,
    power: Option<Unsigned>,
    reasons: Option<Mask>,
}

impl GpuSensors {
    /// The GPU with this number; nothing without the library or the GPU.
    pub fn open(number: u32) -> Option<Self> {
        // SAFETY: every function is declared as the header of the library does, the library stays
        // loaded, and every pointer is to a place that outlives its call and is large enough.
        unsafe {
            let library = dlopen(LIBRARY.as_ptr(), RTLD_NOW);
            if library.is_null() {
                return None;
            }
            type Start = unsafe extern "C" fn() -> c_int;
            type Handle = unsafe extern "C" fn(c_uint, *mut *mut c_void) -> c_int;
            type Name = unsafe extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_int;
            type Version = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
            let start: Start = function(library, c"nvmlInit_v2")?;
            let handle: Handle = function(library, c"nvmlDeviceGetHandleByIndex_v2")?;
            let name_of: Name = function(library, c"nvmlDeviceGetName")?;
            let version: Version = function(library, c"nvmlSystemGetDriverVersion")?;
            let mut device = null_mut();
            if start() != 0 || handle(number, &mut device) != 0 {
                return None;
            }
            let mut bytes = [0_u8; NAME_BYTES];
            let place = bytes.as_mut_ptr().cast();
            let name =
                (name_of(device, place, NAME_BYTES as c_uint - 1) == 0).then(|| text(&bytes));
            bytes.fill(0);
            let place = bytes.as_mut_ptr().cast();
            let id_of: Option<Name> = function(library, c"nvmlDeviceGetUUID");
            let id = id_of
                .is_some_and(|id_of| id_of(device, place, NAME_BYTES as c_uint - 1) == 0)
                .then(|| text(&bytes));
            bytes.fill(0);
            let place = bytes.as_mut_ptr().cast();
            let driver = (version(place, NAME_BYTES as c_uint - 1) == 0).then(|| text(&bytes));
            let reasons = [
                c"nvmlDeviceGetCurrentClocksEventReasons",
                c"nvmlDeviceGetCurrentClocksThrottleReasons",
            ];
            Some(Self {
                device: device as usize,
                name: name?,
                id,
                driver,
                clock: function(library, c"nvmlDeviceGetClockInfo"),
                temperature: function(library, c"nvmlDeviceGetTemperature"),
                power: function(library, c"nvmlDeviceGetPowerUsage"),
                reasons: reasons.into_iter().find_map(|name| function(library, name)),
            })
        }
    }

    /// A reading; what the GPU does not report is left out.
    pub fn read(&self) -> GpuReading {
        let device = self.device as *mut c_void;
        let of_kind = |function: Option<Kind>, kind: c_int| {
            let mut value = 0;
            // SAFETY: the handle holds as long as the library, and the place outlives the call.
            let code = unsafe { function?(device, kind, &mut value) };
            (code == 0).then_some(value)
        };
        let mut power = 0;
        // SAFETY: as above.
        let power_code = self.power.map(|function| unsafe { function(device, &mut power) });
        let mut mask = 0;
        // SAFETY: as above.
        let mask_code = self.reasons.map(|function| unsafe { function(device, &mut mask) });
        GpuReading {
            name: self.name.clone(),
            id: self.id.clone(),
            driver: self.driver.clone(),
            clocks_mhz: [CLOCK_SM, CLOCK_MEMORY].map(|kind| of_kind(self.clock, kind)),
            temperature_c: of_kind(self.temperature, SENSOR_GPU),
            power_mw: (power_code == Some(0)).then_some(power),
            reasons: (mask_code == Some(0)).then_some(mask),
        }
    }
}

impl std::fmt::Debug for GpuSensors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// A function of a library.
///
/// # Safety
///
/// `F` is a pointer to a function, with the arguments that the library declares.
unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the library is loaded and the name ends with a zero; the rest is the caller's word.
    unsafe {
        let found = dlsym(library, name.as_ptr());
        (!found.is_null()).then(|| std::mem::transmute_copy(&found))
    }
}

fn text(bytes: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(bytes).unwrap_or_default();
    text.to_string_lossy().into_owned()
}
