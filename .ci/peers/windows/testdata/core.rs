// SPDX-License-Identifier: Apache-2.0
// Rust with its core library: formatting, traits, generics, closures.
#![no_std]
#![no_main]
use core::fmt::Write;
use core::sync::atomic::{AtomicUsize, Ordering};

static SINK: AtomicUsize = AtomicUsize::new(0);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

struct Page {
    bytes: [u8; 256],
    used: usize,
}

impl Write for Page {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        for b in s.bytes() {
            *self.bytes.get_mut(self.used).ok_or(core::fmt::Error)? = b;
            self.used += 1;
        }
        Ok(())
    }
}

trait Shape {
    fn area(&self) -> f64;
    fn name(&self) -> &'static str {
        "shape"
    }
}
struct Square(f64);
struct Circle<T>(T);
impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}
impl<T: Copy + Into<f64>> Shape for Circle<T> {
    fn area(&self) -> f64 {
        let r: f64 = self.0.into();
        3.14 * r * r
    }
    fn name(&self) -> &'static str {
        "circle"
    }
}

#[inline(always)]
fn inner<const N: usize>(x: usize) -> usize {
    SINK.fetch_add(x * N, Ordering::SeqCst)
}
#[inline(always)]
fn outer(x: usize) -> usize {
    inner::<3>(x) + inner::<4>(x + 1)
}

#[inline(never)]
fn total(list: &[&dyn Shape]) -> f64 {
    list.iter().map(|s| s.area()).sum::<f64>() + outer(list.len()) as f64
}

#[inline(never)]
fn sorted(list: &mut [u32]) -> Option<u32> {
    list.sort_unstable_by_key(|x| x % 10);
    list.iter().copied().filter(|x| x & 1 == 1).max()
}

#[no_mangle]
pub extern "C" fn start() -> i32 {
    let mut page = Page { bytes: [0; 256], used: 0 };
    let shapes: [&dyn Shape; 3] = [&Square(2.0), &Circle(3u8), &Circle(1.5f32)];
    let mut numbers = [31, 52, 13, 94, 75, 6, 27];
    let _ = write!(page, "{:?} {:.2}", sorted(&mut numbers), total(&shapes));
    for s in shapes {
        let _ = writeln!(page, "{:>8}|{:e}", s.name(), s.area());
    }
    page.used as i32 + outer(page.used) as i32
}

#[no_mangle]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    for i in 0..n {
        core::ptr::write_volatile(to.add(i), core::ptr::read_volatile(from.add(i)));
    }
    to
}
#[no_mangle]
pub unsafe extern "C" fn memset(to: *mut u8, c: i32, n: usize) -> *mut u8 {
    for i in 0..n {
        core::ptr::write_volatile(to.add(i), c as u8);
    }
    to
}
#[no_mangle]
pub unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    for i in 0..n {
        let (x, y) = (*a.add(i), *b.add(i));
        if x != y {
            return x as i32 - y as i32;
        }
    }
    0
}
#[no_mangle]
pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    memcpy(to, from, n)
}
#[no_mangle]
pub extern "C" fn __CxxFrameHandler3() {}
#[no_mangle]
pub static _fltused: i32 = 0;
