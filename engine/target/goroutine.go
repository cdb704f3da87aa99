package target

// A Goroutine is what Go's runtime knows of a goroutine. What is empty is not known.
type Goroutine struct {
	ID uint64
	// Name is the ID of the Thread that the goroutine is: no thread of an operating
	// system has one of this kind.
	Name string
	// State is the runtime's name of its state: idle, runnable, running, syscall,
	// waiting, preempted, copystack or one of a later version. A goroutine that
	// ended is none.
	State string
	// WaitReason is what it waits for, in the runtime's words: "chan receive".
	WaitReason string
	// WaitSince is when the garbage collector found it waiting first, in
	// nanoseconds of the clock that the runtime uses; 0: it did not.
	WaitSince uint64
	// Thread is the ID of the thread that executes it; "" where none does.
	Thread string
	// Parent is the ID of the goroutine that created it; 0: unknown.
	Parent uint64
	// CreatedBy is the go statement, StartedAt the function that it calls; nil:
	// unknown. Goroutines share them.
	CreatedBy, StartedAt *CodePlace
	IsSystem             bool // the runtime made it for itself
	IsScanned            bool // the garbage collector is scanning its stack
	IsLocked             bool // no other thread may execute it
}

// A CodePlace is a place in the code of a target, by what its debug information says.
type CodePlace struct {
	PC       uint64
	Function string // "": unknown
	File     string
	Line     int // 0: unknown
}
