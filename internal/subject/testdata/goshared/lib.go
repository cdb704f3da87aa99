// Goshared is a library for C whose function leaves three goroutines that wait.
package main

import "C"

import "time"

var never = make(chan int)

//export Begin
func Begin() {
	for i := 0; i < 3; i++ {
		go func() { <-never }()
	}
	time.Sleep(50 * time.Millisecond)
}

func main() {}
