//! The worker: a process that loads one kernel and calls it on karve's request.
//!
//! It runs the code of a candidate in its own address space, so it is not trusted: karve itself
//! reads and checks everything that matters. It exists to be frozen, watched and discarded.

use super::protocol::{
    Answer, FLAG_MODE_CHANGED, Given, Hello, MESSAGE_BYTES_MAX, Question, Setup, Slot, Told,
};
use karve_os::native::{self, Access, Entry, Mapped, Registers};
use karve_os::plain_work;
use karve_os::process;
use std::cell::OnceCell;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// A worker that has loaded its kernel.
struct Worker {
    entry: Entry,
    input: Mapped,
    output: Mapped,
    setup: Option<Prepared>,
    /// Iterations of plain work per nanosecond, once needed.
    spin_rate: OnceCell<f64>,
}

/// Arguments that lack only their addresses.
struct Prepared {
    registers: Registers,
    /// Which integer is a pointer, into which memory, and its offset from the start of the slot.
    pointers: Vec<(usize, Side, u64)>,
    input_stride: u64,
    output_stride: u64,
}

#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

/// Handles requests until karve closes the connection.
pub fn serve() {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    let mut worker: Option<Worker> = None;
    while let Ok((bytes, fds)) = native::receive(&mut buffer) {
        if bytes == 0 {
            return;
        }
        let Ok((nonce, question)) = Question::parse(&buffer[..bytes]) else {
            return;
        };
        let answer = match (question, &mut worker) {
            (Question::Hello(hello), None) => match Worker::new(&hello, &fds) {
                Ok(made) => {
                    worker = Some(made);
                    Answer::Done
                }
                Err(why) => Answer::Failed(why),
            },
            // A shared object has nothing to prepare, and writes to karve's memory itself.
            (Question::Ping | Question::Stage(_) | Question::Fetch, _) => Answer::Done,
            (Question::Setup(setup), Some(worker)) => match Prepared::new(&setup) {
                Ok(prepared) => {
                    worker.setup = Some(prepared);
                    Answer::Done
                }
                Err(why) => Answer::Failed(why),
            },
            (Question::Batch { slots, spin_ns }, Some(worker)) => worker.batch(&slots, spin_ns),
            (_, _) => Answer::Failed("a request out of order".into()),
        };
        if native::answer(&answer.render(nonce)).is_err() {
            return;
        }
    }
}

impl Worker {
    fn new(hello: &Hello, fds: &[OwnedFd]) -> Result<Self, String> {
        let [input, output] = fds else {
            return Err("the memory did not arrive".into());
        };
        let map = |fd: &OwnedFd, bytes: u64, access| {
            Mapped::new(fd, bytes as usize, access)
                .map_err(|error| format!("cannot map the memory: {error}"))
        };
        let name = |text: &str| CString::new(text).map_err(|_| "a name with a zero".to_owned());
        let input = map(input, hello.input_bytes, Access::Read)?;
        let output = map(output, hello.output_bytes, Access::Write)?;
        let (path, entry) = (name(&hello.path)?, name(&hello.entry)?);
        // From here on, candidate code runs.
        process::give_up(&path);
        Ok(Self {
            input,
            output,
            spin_rate: OnceCell::new(),
            entry: native::load(&path, &entry)?,
            setup: None,
        })
    }

    fn batch(&self, slots: &[Slot], spin_ns: u64) -> Answer {
        let Some(setup) = &self.setup else {
            return Answer::Failed("a batch before its arguments".into());
        };
        let mut calls = Vec::with_capacity(slots.len());
        for slot in slots {
            let Some(call) = setup.call(self, *slot) else {
                return Answer::Failed("a slot outside the memory".into());
            };
            calls.push(call);
        }
        let mode = native::floating_point_mode();
        let spin = match spin_ns {
            0 => 0,
            ns => (ns as f64 * self.spin_rate.get_or_init(plain_work::rate)) as u64,
        };
        let cpu = native::own_cpu_ns();
        let start = Instant::now();
        for call in &calls {
            self.entry.call(call);
            if spin > 0 {
                plain_work::work(spin);
            }
        }
        let wall_ns = start.elapsed().as_nanos() as u64;
        let cpu_ns = native::own_cpu_ns() - cpu;
        let changed = native::floating_point_mode() != mode;
        Answer::Finished(Told {
            wall_ns,
            cpu_ns,
            flags: if changed { FLAG_MODE_CHANGED } else { 0 },
            device_ns: 0,
        })
    }
}

impl Prepared {
    fn new(setup: &Setup) -> Result<Self, String> {
        let mut prepared = Self {
            registers: Registers {
                integers: [0; 16],
                floats: [0.0; 8],
            },
            pointers: Vec::new(),
            input_stride: setup.input_stride,
            output_stride: setup.output_stride,
        };
        let (mut integers, mut floats) = (0, 0);
        for given in &setup.args {
            let full = "too many arguments";
            if let Given::Float { bits, single } = given {
                let value = f64::from_bits(*bits);
                // A float32 is passed in the low half of its register.
                let passed = match single {
                    true => f64::from_bits(u64::from((value as f32).to_bits())),
                    false => value,
                };
                *prepared.registers.floats.get_mut(floats).ok_or(full)? = passed;
                floats += 1;
                continue;
            }
            let place = prepared.registers.integers.get_mut(integers).ok_or(full)?;
            match given {
                Given::Integer { value } => *place = *value as usize,
                Given::Input(tensor) => {
                    prepared
                        .pointers
                        .push((integers, Side::Input, tensor.offset));
                }
                Given::Output(tensor) | Given::InOut(tensor) => {
                    prepared
                        .pointers
                        .push((integers, Side::Output, tensor.offset));
                }
                Given::Float { .. } => {}
            }
            integers += 1;
        }
        Ok(prepared)
    }

    fn call(&self, worker: &Worker, slot: Slot) -> Option<Registers> {
        let mut registers = self.registers;
        for (index, side, offset) in &self.pointers {
            let address = match side {
                Side::Input => {
                    let start = self.input_stride.checked_mul(u64::from(slot.input))?;
                    worker.input.address(start.checked_add(*offset)?)
                }
                Side::Output => {
                    let start = self.output_stride.checked_mul(u64::from(slot.output))?;
                    worker.output.address(start.checked_add(*offset)?)
                }
            };
            registers.integers[*index] = address?;
        }
        Some(registers)
    }
}
