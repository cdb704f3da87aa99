// Properties of Objective-C.
__attribute__((objc_root_class)) @interface Shape { int _side; }
@property(getter=theSide, setter=putSide:) int side;
@property(readonly, nonatomic) Shape *next;
@end
@implementation Shape
@synthesize side = _side;
- (Shape *)next { return self; }
@end
int area(Shape *s) { return s.side * s.side; }
