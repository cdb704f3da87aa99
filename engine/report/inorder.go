// SPDX-License-Identifier: Apache-2.0

package report

import (
	"runtime"
	"sync"
)

// orderedChunk is the number of items in a piece of work of inOrder.
const orderedChunk = 512

// inOrder makes the text of a number of items by several goroutines, 0 being one for each
// CPU, and passes it to take in the order of the items. There are a few pieces of text at a
// time. The error is that of take, after which no more text is made.
func inOrder(jobs, items int, appendText func(text []byte, from, to int) []byte, take func([]byte) error) error {
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	if jobs == 1 || items <= orderedChunk {
		return oneByOne(items, appendText, take)
	}
	type piece struct {
		from int
		text chan []byte
	}
	work, order := make(chan piece), make(chan chan []byte, 2*jobs)
	free := make(chan []byte, 4*jobs) // to be written over
	stop := make(chan struct{})
	var workers sync.WaitGroup
	workers.Go(func() {
		defer close(work)
		defer close(order)
		for from := 0; from < items; from += orderedChunk {
			p := piece{from, make(chan []byte, 1)}
			select {
			case order <- p.text:
				work <- p
			case <-stop:
				return
			}
		}
	})
	for range jobs {
		workers.Go(func() {
			for p := range work {
				var text []byte
				select {
				case text = <-free:
				default:
				}
				p.text <- appendText(text[:0], p.from, min(p.from+orderedChunk, items))
			}
		})
	}
	var failed error
	for piece := range order {
		text := <-piece
		if failed == nil {
			if failed = take(text); failed != nil {
				close(stop)
			}
		}
		select {
		case free <- text:
		default:
		}
	}
	workers.Wait()
	return failed
}

// oneByOne is inOrder on the calling goroutine.
func oneByOne(items int, appendText func(text []byte, from, to int) []byte, take func([]byte) error) error {
	var text []byte
	for from := 0; from < items; from += orderedChunk {
		text = appendText(text[:0], from, min(from+orderedChunk, items))
		if err := take(text); err != nil {
			return err
		}
	}
	return nil
}
