// Rust's own types, in frames of calls, inlined and not, and a fault at the end.
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hint::black_box;
use std::num::NonZeroU32;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug)]
enum Plain { First, Second = 7, Last = -1 }
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Small { A = 1, B = 255 }
#[derive(Debug)]
enum Shape { Circle(f64), Rectangle { width: f32, height: f32 }, Named(String, u8), Nothing }
#[derive(Debug)]
enum Tree { Leaf, Node(Box<Tree>, i32, Box<Tree>) }
enum Single { Only(u32) }
enum Never {}
enum Niche { Text(String), Empty, Other }
enum Nested { Inner(Option<Shape>), Outer(Result<u8, Plain>) }
enum Big { X(u128), Y }

struct Unit;
struct Tuple(i32, &'static str);
struct Point<T> { x: T, y: T }
struct Fields<'a> { text: &'a str, numbers: &'a [u16], owner: Option<&'a Point<i8>>, unit: Unit, flag: bool }
#[repr(C)]
union Overlap { int: u32, float: f32 }
trait Area { fn area(&self, depth: u32) -> f64; }
impl Area for Point<f64> { #[inline(never)] fn area(&self, depth: u32) -> f64 { let product = self.x * self.y; black_box(&product); product + fault(depth, self) } }

static GREETING: &str = "hello from a static";
static mut COUNTER: u64 = 12;
thread_local! { static LOCAL: Cell<i32> = Cell::new(5); }

#[inline(never)]
fn fault(depth: u32, at: &Point<f64>) -> f64 {
    let here = depth as f64 + at.x;
    black_box(&here);
    unsafe { *black_box(std::ptr::null_mut::<f64>()) = here; }
    here
}

#[inline(always)]
fn inlined_inner<A: Area + ?Sized>(a: &A, count: u32) -> f64 { let twice = count * 2; a.area(twice) + twice as f64 }
#[inline(always)]
fn inlined_outer(a: &dyn Area, count: u32) -> f64 { let more = count + black_box(1); inlined_inner(a, more) }

#[inline(never)]
fn closures(n: i32) -> f64 {
    let captured = format!("captured {n}");
    let mut counter = 3;
    let by_reference = |x: i32| x + n + captured.len() as i32;
    let mut by_mutable = |x: i32| { counter += x; counter };
    let boxed: Box<dyn Fn(i32) -> i32> = Box::new(move |x| x * n);
    let function: fn(i32) -> f64 = closures;
    let area: &dyn Area = &Point { x: 1.5, y: -2.0 };
    let boxed_area: Box<dyn Area> = Box::new(Point { x: 3.0, y: 4.0 });
    black_box(by_mutable(2));
    black_box((&by_reference, &by_mutable, &boxed, &function, &boxed_area, &area));
    let r = inlined_outer(area, n as u32);
    r + by_reference(1) as f64 + boxed(2) as f64
}

#[inline(never)]
fn collections(n: usize) -> f64 {
    let v0: Vec<i32> = Vec::new();
    let v1 = vec![42u8];
    let v3 = vec!["one".to_string(), String::new(), "three".to_string()];
    let v1000: Vec<usize> = (0..n).collect();
    let nested = vec![vec![1, 2], vec![], vec![3]];
    let options = vec![Some(1), None, Some(3)];
    let mut deque: VecDeque<i32> = (0..5).collect();
    deque.rotate_left(2);
    let h0: HashMap<i32, i32> = HashMap::new();
    let h1 = HashMap::from([("only".to_string(), 1)]);
    let h3 = HashMap::from([(1, "a"), (2, "b"), (3, "c")]);
    let h1000: HashMap<usize, f64> = (0..n).map(|i| (i, i as f64 / 2.0)).collect();
    let hs = HashSet::from(['x', 'y']);
    let b0: BTreeMap<i32, i32> = BTreeMap::new();
    let b3 = BTreeMap::from([(3, "c"), (1, "a"), (2, "b")]);
    let b1000: BTreeMap<usize, usize> = (0..n).map(|i| (i, i * i)).collect();
    let bs = BTreeSet::from(["p", "q"]);
    let unit_vec = vec![(), ()];
    black_box((&v0, &v1, &v3, &v1000, &nested, &options, &deque, &h0, &h1, &h3));
    black_box((&h1000, &hs, &b0, &b3, &b1000, &bs, &unit_vec));
    closures(n as i32 % 13)
}

#[inline(never)]
fn owners(tuple: (i32, char, &str), array: [i16; 4]) -> f64 {
    let boxed = Box::new(Point { x: 1, y: -1 });
    let boxed_slice: Box<[u8]> = vec![1, 2, 3].into_boxed_slice();
    let boxed_str: Box<str> = "boxed".into();
    let rc = Rc::new(Tuple(5, "five"));
    let second = rc.clone();
    let weak: Weak<Tuple> = Rc::downgrade(&rc);
    let arc = Arc::new(vec![1, 2, 3]);
    let arc_str: Arc<str> = "shared".into();
    let cell = Cell::new(9);
    let ref_cell = RefCell::new(vec![4, 5]);
    let borrowed = ref_cell.borrow();
    let mutex = Mutex::new(11);
    let cow: Cow<str> = Cow::Borrowed("cow");
    let owned: Cow<str> = Cow::Owned("owned".to_string());
    let overlap = Overlap { float: 1.0 };
    black_box((&boxed, &boxed_slice, &boxed_str, &rc, &second, &weak, &arc, &arc_str, &cell, &ref_cell));
    black_box((&borrowed, &mutex, &cow, &owned, &overlap, &tuple, &array));
    collections(1000)
}

#[inline(never)]
fn enums(by_value: Shape, maybe: Option<Box<i32>>) -> f64 {
    let (first, second, last) = (Plain::First, Plain::Second, Plain::Last);
    let (small, small_b) = (Small::A, Small::B);
    let circle = Shape::Circle(2.5);
    let rectangle = Shape::Rectangle { width: 1.5, height: 2.5 };
    let named = Shape::Named("shape".to_string(), 8);
    let nothing = Shape::Nothing;
    let tree = Tree::Node(Box::new(Tree::Leaf), 4, Box::new(Tree::Node(Box::new(Tree::Leaf), 5, Box::new(Tree::Leaf))));
    let single = Single::Only(6);
    let niche = Niche::Text("niche".to_string());
    let (empty, other) = (Niche::Empty, Niche::Other);
    let inner = Nested::Inner(Some(Shape::Circle(1.0)));
    let inner_none = Nested::Inner(None);
    let outer = Nested::Outer(Err(Plain::Second));
    let (big, big_y) = (Big::X(1 << 100), Big::Y);
    let (some_box, no_box): (Option<Box<i32>>, Option<Box<i32>>) = (Some(Box::new(3)), None);
    let (some, none): (Option<u32>, Option<u32>) = (Some(0), None);
    let (some_ref, no_ref): (Option<&str>, Option<&str>) = (Some("ref"), None);
    let (some_char, no_char): (Option<char>, Option<char>) = (Some('c'), None);
    let (some_bool, no_bool): (Option<bool>, Option<Option<bool>>) = (Some(true), Some(None));
    let non_zero = NonZeroU32::new(5);
    let (ok, err): (Result<u8, String>, Result<u8, String>) = (Ok(1), Err("error".to_string()));
    let never: Result<u8, Never> = Ok(7);
    let unit_result: Result<(), Box<dyn std::error::Error>> = Ok(());
    let unit_error: Result<(), Box<dyn std::error::Error>> = Err("boxed error".into());
    let ordering = 1.cmp(&2);
    black_box((&first, &second, &last, &small, &small_b, &circle, &rectangle, &named, &nothing, &tree));
    black_box((&single, &niche, &empty, &other, &inner, &inner_none, &outer, &big, &big_y, &some_box));
    black_box((&no_box, &some, &none, &some_ref, &no_ref, &some_char, &no_char, &some_bool, &no_bool, &non_zero));
    black_box((&ok, &err, &never, &unit_result, &unit_error, &ordering, &by_value, &maybe));
    owners((1, 'z', "tuple"), [1, -2, 3, -4])
}

#[inline(never)]
fn scalars(text: &str, slice: &[i32], mutable: &mut u64) -> f64 {
    let (t, f) = (true, false);
    let (c, euro, emoji, nul) = ('c', '€', '😀', '\0');
    let (i8_, u8_, i16_, u16_) = (-128i8, 255u8, -32768i16, 65535u16);
    let (i32_, u32_, i64_, u64_) = (i32::MIN, u32::MAX, i64::MIN, u64::MAX);
    let (i128_, u128_) = (i128::MIN, u128::MAX);
    let (isize_, usize_) = (-5isize, 6usize);
    let (f32_, f64_, nan, inf) = (1.5f32, -2.25f64, f64::NAN, f64::INFINITY);
    let unit = ();
    let empty = "";
    let long = "a text with a \u{20ac}, a quote \" and a \n new line";
    let string = String::from("owned");
    let no_string = String::new();
    let part = &slice[1..];
    let no_slice: &[i32] = &[];
    let strs = ["a", "b"];
    let bytes = b"bytes";
    let pointer: *const i32 = &slice[0];
    let point = Point { x: 1i8, y: -1 };
    let fields = Fields { text: "field", numbers: &[1, 2], owner: Some(&point), unit: Unit, flag: true };
    let tuple_struct = Tuple(3, "tuple");
    let matrix = [[1u8, 2], [3, 4]];
    let empty_array: [u64; 0] = [];
    let range = 1..5;
    let x = 1;
    black_box(&x);
    let x = "shadow";
    black_box(&x);
    { let x = 2.5; black_box(&x); let x = [x, x]; black_box(&x);
    black_box((&t, &f, &c, &euro, &emoji, &nul, &i8_, &u8_, &i16_, &u16_));
    black_box((&i32_, &u32_, &i64_, &u64_, &i128_, &u128_, &isize_, &usize_, &f32_, &f64_));
    black_box((&nan, &inf, &unit, &empty, &long, &string, &no_string, &part, &no_slice, &strs));
    black_box((&bytes, &pointer, &point, &fields, &tuple_struct, &matrix, &empty_array, &range, &text, &mutable));
    enums(Shape::Named("by value".to_string(), 1), Some(Box::new(9))) }
}

fn main() {
    LOCAL.with(|l| l.set(6));
    let mut number = 99;
    unsafe { COUNTER += 1 }
    println!("{} {}", scalars(GREETING, &[10, 20, 30], &mut number), number);
}
