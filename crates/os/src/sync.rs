//! Locks that outlive a thread that panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also one whose last holder panicked: every change under our locks leaves
/// consistent data, and the panic is reported where it happened.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_whose_holder_panicked_is_locked_with_what_it_had() {
        let shared = Mutex::new(1);
        let held = || {
            let mut value = locked(&shared);
            *value = 2;
            panic!("while it is locked");
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(held)).unwrap_err();
        assert!(shared.is_poisoned());
        assert_eq!(*locked(&shared), 2);
    }
}
