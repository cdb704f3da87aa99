// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
)

// fileServers are the servers that are asked for files. They know what they are asked for at this
// moment.
type fileServers struct {
	debuginfod, symbols object.Remote // nil: none is asked

	mu       sync.Mutex
	underway map[string]int // how often each file is asked for
}

// keyOf names a file.
func keyOf(f object.RemoteFile) string {
	return fmt.Sprintf("%s\x00%x\x00%s\x00%s\x00%s", f.Kind, f.BuildID, f.Source, f.Name, f.ID)
}

// Fetch implements object.Remote: it asks the servers of the kind of file.
func (s *fileServers) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	if s.debuginfod != nil && f.Kind != object.RemoteSymbols && f.Kind != object.RemoteCode && f.Kind != object.RemotePDB {
		path, tried = s.ask(s.debuginfod, f)
	}
	if path != "" || s.symbols == nil || f.Kind == object.RemoteExecutable && f.Name == "" {
		return path, tried
	}
	path, more := s.ask(s.symbols, f)
	return path, append(tried, more...)
}

// ask asks some of the servers.
func (s *fileServers) ask(r object.Remote, f object.RemoteFile) (path string, tried []object.Attempt) {
	key := keyOf(f)
	s.note(key, 1)
	defer s.note(key, -1)
	return r.Fetch(f)
}

func (s *fileServers) note(key string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underway[key] += n; s.underway[key] == 0 {
		delete(s.underway, key)
	}
}

// isUnderway reports whether servers are asked for a file at this moment.
func (s *fileServers) isUnderway(f object.RemoteFile) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.underway[keyOf(f)] > 0
}

// recorded is a Remote whose files fileServers know.
type recorded struct {
	servers *fileServers
	object.Remote
}

// Fetch implements object.Remote.
func (n recorded) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	return n.servers.ask(n.Remote, f)
}

// recording has fileServers know the requests to a Remote; nil stays nil.
func (s *fileServers) recording(r object.Remote) object.Remote {
	if r == nil {
		return nil
	}
	return recorded{s, r}
}
