// crash KIND fails in the way of the table at the end. It is compiled with panic=abort.
use std::hint::black_box;

fn index(list: &[i32], i: usize) -> i32 { list[i] }
fn unwrap(o: Option<i32>) -> i32 { o.unwrap() }
fn own(n: i32) { panic!("the number is {n}") }
fn fixed() { panic!("a fixed text") }
fn deep(n: u64) -> u64 { let room = black_box([n; 16]); deep(n + 1) + room[3] }
fn null() -> i32 { unsafe { *black_box(8 as *const i32) } }
fn equal(n: i32) { assert_eq!(1, n, "not equal") }

fn main() {
    match std::env::args().nth(1).unwrap().as_str() {
        "index" => { black_box(index(&[1, 2], black_box(7))); }
        "unwrap" => { black_box(unwrap(black_box(None))); }
        "own" => own(black_box(3)),
        "equal" => equal(black_box(3)),
        "fixed" => fixed(),
        "deep" => { black_box(deep(0)); }
        "null" => { black_box(null()); }
        _ => {}
    }
}
