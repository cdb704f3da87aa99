// Cgoroutines is a Go program whose goroutines are in C, in Go that C called, and in
// threads that C made. Its argument says how it ends: wait prints a line and waits for a
// signal, fault fails in C, go fails in Go that C called.
package main

/*
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

extern void waitInGo(int depth);

static void waitInC(void) { for (;;) pause(); }
static void callGo(int depth) { waitInGo(depth); }
static void fault(void) { *(volatile int *)0 = 1; }

static void *thread(void *depth) { waitInGo(*(int *)depth); return 0; }

static void startThread(void) {
	static int depth = 1;
	pthread_t t;
	pthread_create(&t, 0, thread, &depth);
}
*/
import "C"

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

var (
	never = make(chan int)
	ready int32
	fails int32
)

//export waitInGo
func waitInGo(depth C.int) {
	if depth > 0 {
		C.callGo(depth - 1)
		return
	}
	atomic.AddInt32(&ready, 1)
	if atomic.LoadInt32(&fails) > 0 {
		panic("done")
	}
	<-never
}

func main() {
	mode := "wait"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	go C.waitInC()
	go C.callGo(2)
	C.startThread()
	for atomic.LoadInt32(&ready) < 2 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	fmt.Println("ready", os.Getpid())
	switch mode {
	case "fault":
		C.fault()
	case "go":
		atomic.StoreInt32(&fails, 1)
		C.callGo(1)
	}
	<-never
}
