// A null pointer read in a closure of an iterator that is inlined, and a vtable's call.
use std::hint::black_box;
trait Reader { fn read(&self, at: usize) -> u64; }
struct Raw(*const u64);
impl Reader for Raw {
    #[inline(never)]
    fn read(&self, at: usize) -> u64 { unsafe { std::ptr::read_volatile(self.0.add(at)) } }
}
#[inline(always)]
fn total(r: &dyn Reader, n: usize) -> u64 { (1..=n).map(|i| r.read(i)).filter(|v| v % 2 == 0).sum() }
#[inline(never)]
fn run(r: Box<dyn Reader>) -> u64 { total(&*r, black_box(3)) + 1 }
fn main() { println!("{}", run(black_box(Box::new(Raw(std::ptr::null()))))); }
