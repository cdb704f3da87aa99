// SPDX-License-Identifier: Apache-2.0

// Package worker reads the files of strangers in processes of their own: each has one
// request at a time, caches code objects from one to the next, and is confined, so that a
// hostile file costs its own request and nothing else.
//
// A worker is this executable, started again. It talks to the process that started it over
// a socket of packets: each is a message in JSON, perhaps with descriptors. It ends when
// the socket is closed.
package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/internal/confine"
)

// toWorker is a message to a worker. One field is set.
type toWorker struct {
	Confine *confine.Confinement `json:",omitempty"` // the first message: before it, the process does nothing
	Setup   *Setup               `json:",omitempty"` // the second message
	Run     *run                 `json:",omitempty"` // with the descriptors of the input and of the report
	Cancel  uint64               `json:",omitempty"` // the number of a run
	Fetched *fetched             `json:",omitempty"` // with the file's descriptor, if a worker may not open it by its path
	Answer  *answer              `json:",omitempty"` // likewise
	// Unpacked has, as the answer to the beginning, the descriptor of the pipe, and to the end, that of the file.
	Unpacked *unpacked `json:",omitempty"`
}

// fromWorker is a message of a worker. One field is set.
type fromWorker struct {
	Ready *ready    `json:",omitempty"`
	Fetch *fetch    `json:",omitempty"`
	Ask   *question `json:",omitempty"`
	Done  *done     `json:",omitempty"`
	// Unpack asks for a file to unpack into, and Drop, with the number of its beginning, gives it up.
	Unpack *unpackRequest `json:",omitempty"`
	Drop   uint64         `json:",omitempty"`
}

// ready announces that a worker takes runs, and lists the confinement that this system
// lacks.
type ready struct{ Missing []string }

// run is a request.
type run struct {
	Number uint64
	Name   string // of the input, in reports and errors
	Job    job.Job
	Forget forget `json:",omitzero"` // before the job
}

// forget names the build IDs whose files a worker looks for anew.
type forget struct {
	IDs [][]byte `json:",omitempty"`
	All bool     `json:",omitempty"` // whatever it remembers
}

// fetch asks for a file that a worker may not look for itself.
type fetch struct {
	Number    uint64
	IsSymbols bool // from stores of symbol files; else from debuginfod servers
	File      object.RemoteFile
}

// fetched answers a fetch.
type fetched struct {
	Number uint64
	Path   string // "": the file was not found
	Tried  []object.Attempt

	file *os.File // nil: the path can be opened
}

// question is a question to the caller of the run.
type question struct {
	Number uint64
	Proto  []byte // a servicepb.Question
}

// answer answers a question.
type answer struct {
	Number  uint64
	Proto   []byte // a servicepb.Answer
	Path    string // of the requested file
	Failure string // why there is no answer; "": it was answered

	file *os.File // nil: the path can be opened
}

// unpackRequest asks for a file to unpack into. Its bytes go through a pipe, each piece behind a head: see unpackedFile.
type unpackRequest struct {
	Begin uint64 // the question, which is answered at once
	End   uint64 // the question that is answered when all has come
}

// unpacked answers one of the questions of an unpackRequest.
type unpacked struct {
	Number  uint64
	Free    int64  // to the first: free bytes of the disk; -1: they are not known
	Failure string // why there is no file; "": it is there

	file *os.File
}

// done ends a run.
type done struct {
	Number  uint64
	Outcome job.Outcome
	Failure *Failure // nil: the report was written
}

// maxMessage bounds a message. Lists that may be longer are in files.
const maxMessage = 128 << 10

// conn is one end of the socket.
type conn struct {
	*net.UnixConn
	writing sync.Mutex
	buffer  []byte // of receive
}

func newConn(f *os.File) (*conn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("the descriptor of a worker is no Unix socket")
	}
	return &conn{UnixConn: u, buffer: make([]byte, maxMessage)}, nil
}

// send sends a message with descriptors.
func (c *conn) send(message any, files ...*os.File) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("a message of %d bytes, expected at most %d", len(b), maxMessage)
	}
	var rights []byte
	if len(files) > 0 {
		rights = rightsOf(files)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, _, err = c.WriteMsgUnix(b, rights, nil)
	return err
}

// receive reads a message and its descriptors. It is for one goroutine.
func (c *conn) receive(message any) (files []*os.File, err error) {
	rights := make([]byte, rightsSize)
	n, m, flags, _, err := c.ReadMsgUnix(c.buffer, rights)
	if m > 0 {
		files = received(rights[:m])
	}
	switch {
	case err != nil:
	case n == 0:
		err = io.EOF
	case flags&cutFlags != 0:
		err = fmt.Errorf("a message of more than %d bytes", maxMessage)
	default:
		err = json.Unmarshal(c.buffer[:n], message)
	}
	if err != nil {
		closeAll(files)
		return nil, err
	}
	return files, nil
}

// maxFiles bounds the descriptors of a message.
const maxFiles = 2

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
