// Goroutines is a Go program whose goroutines are in every state that a core can
// have. Its first argument says how it ends: wait prints a line and waits for a signal,
// panic fails in a goroutine, abort has the kernel end it while goroutines execute,
// without a word of the runtime. The second is how many goroutines receive from a
// channel. It compiles with Go 1.19.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var (
	never   = make(chan int)
	full    = make(chan int)
	nothing chan int
	locked  sync.Mutex
	guarded sync.RWMutex
	changed = sync.NewCond(&sync.Mutex{})
	group   sync.WaitGroup
	stop    bool
	sink    int
)

//go:noinline
func receive(ready *sync.WaitGroup) {
	ready.Done()
	<-never
}

//go:noinline
func deep(depth int, ready *sync.WaitGroup) int {
	if depth == 0 {
		ready.Done()
		return <-never
	}
	return deep(depth-1, ready) + 1
}

//go:noinline
func spin(ready *sync.WaitGroup) {
	ready.Done()
	x := 1
	for !stop {
		x = x*1103515245 + 12345
	}
	sink = x
}

// sleep is inlined into the functions that wait.
func sleep() { time.Sleep(time.Hour) }

type object struct{ value [4]int }

// waits are the ways to wait, each for a goroutine of its own.
var waits = []func(){
	func() { full <- 1 },
	func() { <-never },
	func() { <-nothing },
	func() { nothing <- 1 },
	func() {
		select {
		case <-never:
		case full <- 1:
		}
	},
	func() { select {} },
	func() { locked.Lock() },
	func() { guarded.RLock() },
	func() { guarded.Lock() },
	func() { changed.L.Lock(); changed.Wait() },
	func() { group.Wait() },
	func() { sleep() },
	func() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		_, _ = l.Accept()
	},
	func() {
		var ends [2]int
		if err := syscall.Pipe(ends[:]); err != nil {
			panic(err)
		}
		var b [1]byte
		_, _ = syscall.Read(ends[0], b[:])
	},
	func() { runtime.LockOSThread(); <-never },
	func() { go func() { go func() { <-never }(); <-never }(); <-never },
	func() { defer func() { recover(); <-never }(); panic("recovered") },
}

func main() {
	count := 10
	if len(os.Args) > 2 {
		count, _ = strconv.Atoi(os.Args[2])
	}
	locked.Lock()
	guarded.Lock()
	group.Add(1)
	for _, f := range waits {
		go f()
	}
	time.AfterFunc(time.Millisecond, func() { <-never })
	o := &object{}
	runtime.SetFinalizer(o, func(o *object) { sink = o.value[0]; <-never })
	o = nil
	runtime.GC()
	runtime.GC()
	var ready sync.WaitGroup
	ready.Add(count + 1)
	for i := 0; i < count; i++ {
		go receive(&ready)
	}
	go deep(1000, &ready)
	ready.Wait()
	time.Sleep(100 * time.Millisecond)
	// More that execute than there are processors: some of them are preempted. One
	// that is started after them has not executed yet.
	runtime.GOMAXPROCS(2)
	ready.Add(4)
	for i := 0; i < 4; i++ {
		go spin(&ready)
	}
	ready.Wait()
	fmt.Println("ready", os.Getpid())
	if len(os.Args) > 1 && os.Args[1] == "panic" {
		go receive(&ready)
		panic("done")
	}
	if len(os.Args) > 1 && os.Args[1] == "abort" {
		abort()
	}
	<-never
}

// abort takes the runtime's handler of a signal away, and sends it.
func abort() {
	var byDefault [4]uint64 // struct sigaction of the kernel
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGABRT), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
}
