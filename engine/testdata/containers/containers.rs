// The containers of Rust's library, for the tests of their forms.
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::*;
use std::ffi::{CString, OsString};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::atomic::*;
use std::sync::{Arc, Mutex, RwLock};

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Point {
    x: i32,
    y: i32,
}

#[derive(Debug)]
enum Shape {
    Dot,
    Circle(f64),
    Rect { w: f64, h: f64 },
}

trait Area {
    fn area(&self) -> f64;
}
impl Area for Point {
    fn area(&self) -> f64 {
        self.x as f64
    }
}
impl Area for f64 {
    fn area(&self) -> f64 {
        *self
    }
}

// black_box keeps a value where it is, as std::hint::black_box of later versions does.
#[inline(never)]
fn black_box<T>(value: T) -> T {
    let kept = unsafe { std::ptr::read_volatile(&value) };
    std::mem::forget(value);
    kept
}

#[inline(never)]
fn stop() {
    std::process::abort();
}

#[inline(never)]
fn texts() {
    let empty = String::new();
    let string = String::from("héllo \"you\"\n");
    let long = "x".repeat(1000);
    let slice: &str = &string[0..3];
    let boxed: Box<str> = "boxed".into();
    let os = OsString::from("os");
    let path = PathBuf::from("/tmp/x");
    let pathref: &Path = &path;
    let cstring = CString::new("c").unwrap();
    let cow: Cow<str> = Cow::Borrowed("cow");
    let rcstr: Rc<str> = Rc::from("rcstr");
    let ch = 'é';
    let bytes = b"bytes";
    black_box((&empty, &string, &long, slice, &boxed, &os, &path, pathref, &cstring, &cow, &rcstr, ch, bytes));
    stop();
}

#[inline(never)]
fn sequences() {
    let v0: Vec<i32> = Vec::new();
    let v3 = vec![1, 2, 3];
    let v1000: Vec<u64> = (0..1000).collect();
    let words = vec!["a".to_string(), "b".to_string()];
    let units = vec![(), ()];
    let nested = vec![vec![1u8], vec![], vec![2, 3]];
    let points = vec![Point { x: 1, y: 2 }];
    let slice: &[i32] = &v3[1..];
    let strs: &[&str] = &["p", "q"];
    let boxed: Box<[i32]> = vec![7, 8].into_boxed_slice();
    let array = [1u16, 2, 3];
    let mut d0: VecDeque<i32> = VecDeque::new();
    let mut d3: VecDeque<i32> = (0..4).collect();
    d3.pop_front();
    d3.push_back(4);
    d3.push_back(5);
    let mut ring: VecDeque<i32> = VecDeque::with_capacity(4);
    for i in 0..6 {
        if ring.len() == 4 {
            ring.pop_front();
        }
        ring.push_back(i);
    }
    let list: LinkedList<i32> = [1, 2, 3].into_iter().collect();
    let heap: BinaryHeap<i32> = [1, 3, 2].into_iter().collect();
    black_box((&v0, &v3, &v1000, &words, &units, &nested, &points, slice, strs, &boxed, &array, &mut d0, &d3, &ring, &list, &heap));
    stop();
}

#[inline(never)]
fn associative() {
    let h0: HashMap<i32, i32> = HashMap::new();
    let h1: HashMap<&str, i32> = [("one", 1)].into();
    let h1000: HashMap<u32, u32> = (0..1000).map(|i| (i, i * i)).collect();
    let hstring: HashMap<String, Vec<i32>> = [("k".to_string(), vec![1, 2])].into();
    let s1: HashSet<i32> = [5].into();
    let swords: HashSet<String> = ["w".to_string()].into();
    let b0: BTreeMap<i32, i32> = BTreeMap::new();
    let b3: BTreeMap<i32, &str> = [(2, "b"), (1, "a"), (3, "c")].into();
    let b1000: BTreeMap<u32, u64> = (0..1000).map(|i| (i, i as u64 * 2)).collect();
    let bs: BTreeSet<String> = ["y".to_string(), "x".to_string()].into();
    let bpoint: BTreeMap<Point, ()> = [(Point { x: 1, y: 2 }, ())].into();
    black_box((&h0, &h1, &h1000, &hstring, &s1, &swords, &b0, &b3, &b1000, &bs, &bpoint));
    stop();
}

#[inline(never)]
fn others() {
    let o0: Option<i32> = None;
    let o1 = Some(5);
    let obox: Option<Box<i32>> = Some(Box::new(6));
    let ostring = Some("s".to_string());
    let ok: Result<i32, String> = Ok(1);
    let err: Result<i32, String> = Err("bad".to_string());
    let dot = Shape::Dot;
    let circle = Shape::Circle(1.5);
    let rect = Shape::Rect { w: 1.0, h: 2.0 };
    let boxed = Box::new(Point { x: 1, y: 2 });
    let rc = Rc::new(5);
    let rc2 = rc.clone();
    let weak: Weak<i32> = Rc::downgrade(&rc);
    let dangling: Weak<i32> = Weak::new();
    let arc = Arc::new("arc".to_string());
    let rcslice: Rc<[i32]> = Rc::from(vec![1, 2]);
    let cell = Cell::new(7);
    let refcell = RefCell::new(vec![1]);
    let borrowed = RefCell::new(8);
    let guard = borrowed.borrow_mut();
    let shared = Rc::new(RefCell::new(Point { x: 3, y: 4 }));
    let mutex = Mutex::new(9);
    let amutex = Arc::new(Mutex::new(vec![1, 2]));
    let rw = RwLock::new("rw".to_string());
    let a1 = AtomicUsize::new(10);
    let abool = AtomicBool::new(true);
    let nonzero = NonZeroU32::new(11).unwrap();
    let dynref: &dyn Area = &2.5f64;
    let dynbox: Box<dyn Area> = Box::new(Point { x: 1, y: 2 });
    let dynrc: Rc<dyn Area> = Rc::new(3.5f64);
    let tuple = (1, "two", 3.5);
    let unit = ();
    let range = 1..5;
    let function: fn() = stop;
    black_box((&o0, &o1, &obox, &ostring, &ok, &err, &dot, &circle, &rect, &boxed, &rc, &rc2, &weak, &dangling));
    black_box((&arc, &rcslice, &cell, &refcell, &guard, &shared, &mutex, &amutex, &rw, &a1, &abool));
    black_box((&nonzero, dynref, &dynbox, &dynrc, &tuple, &unit, &range, function));
    stop();
}

#[inline(never)]
fn unmade() {
    black_box(());
    stop();
    let v = black_box(vec![1]);
    let s = black_box("later".to_string());
    let h: HashMap<i32, i32> = black_box([(1, 2)].into());
    let b: BTreeMap<i32, i32> = black_box([(1, 2)].into());
    let r = black_box(Rc::new(RefCell::new(5)));
    let d: VecDeque<i32> = black_box([1].into());
    let x: Box<dyn Area> = black_box(Box::new(1.0f64));
    black_box((&v, &s, &h, &b, &r, &d, &x));
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("t") => texts(),
        Some("q") => sequences(),
        Some("a") => associative(),
        Some("o") => others(),
        _ => unmade(),
    }
}
