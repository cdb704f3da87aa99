// SPDX-License-Identifier: Apache-2.0

package symbolstore

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/host"
)

// Store has symbol files and code.
type Store interface {
	// Fetch is as in object.Remote.
	Fetch(f object.RemoteFile) (path string, tried []object.Attempt)
	// Close ends connections.
	Close()
}

// Client requests files from stores, one after the other. It is an object.Remote.
type Client []Store

// New makes stores from texts: URLs of servers (http, https), directories, also as file: URLs,
// and single files. It does not connect yet.
func New(texts []string, o download.Options) (Client, error) {
	var c Client
	for _, text := range texts {
		s, err := newStore(text, o)
		if err != nil {
			return nil, err
		}
		c = append(c, s)
	}
	return c, nil
}

// Fetch returns a file from the first store that has it.
func (c Client) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	for _, s := range c {
		found, more := s.Fetch(f)
		if tried = append(tried, more...); found != "" {
			return found, tried
		}
	}
	return "", tried
}

// Close closes idle connections.
func (c Client) Close() {
	for _, s := range c {
		s.Close()
	}
}

func newStore(text string, o download.Options) (Store, error) {
	if scheme, _, ok := strings.Cut(text, "://"); ok {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return nil, errors.New("the URL of a store cannot be read: " + download.WithoutURL(err).Error())
		case scheme == "file" && (u.Host == "" || u.Host == "localhost"):
			text = host.PathOfURL(u.Path)
		case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
			u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = "", "", "", false
			return newServer(u, o), nil
		default:
			return nil, fmt.Errorf("%s: expected http://HOST, https://HOST or a directory", u.Redacted())
		}
	}
	info, err := os.Stat(text)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return directory{text}, nil
	case info.Mode().IsRegular():
		return single{text}, nil
	}
	return nil, fmt.Errorf("%s: %w, expected a directory, a URL or a symbol file", text, object.ErrNotRegular)
}

// errCabinet means that a file is compressed in an unsupported format.
var errCabinet = errors.New("it is a cabinet (.cab), which is not read: expand it")

// directory is a store on this machine.
type directory struct{ path string }

func (d directory) Close() {}

// Fetch looks for a file at the places of the layout, and in the directory itself. It does not
// follow symbolic links out of the directory.
func (d directory) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	keys, err := keysOf(f)
	if err != nil {
		return "", refused(d.path, err)
	}
	places := make([]string, 0, len(keys)+1)
	for i := range keys {
		places = append(places, filepath.Join(keys[i].parts()...))
	}
	if f.Kind != object.RemoteDebuginfo {
		places = append(places, keys[0].leaf)
	}
	for _, place := range places {
		path, _, err := object.Locate(d.path, place)
		if err == nil {
			err = check(path, f)
		}
		if err == nil {
			return path, tried
		}
		if a := attempt(filepath.Join(d.path, place), err); a.Kind != object.Absent && !errors.Is(err, object.ErrNotRegular) {
			tried = append(tried, a)
		}
	}
	if len(tried) == 0 && f.Kind == object.RemoteCode {
		cab := filepath.Join(keys[0].file, keys[0].id, compressed(keys[0].leaf))
		if _, _, err := object.Locate(d.path, cab); err == nil {
			return "", []object.Attempt{{Path: filepath.Join(d.path, cab), Reason: errCabinet.Error(), Kind: object.Unreadable}}
		}
	}
	if len(tried) == 0 {
		tried = []object.Attempt{{Path: filepath.Join(d.path, places[0]), Reason: "no such file", Kind: object.Absent}}
	}
	return "", tried
}

// single is a user-provided symbol file. It serves any module with its identifier, regardless of
// the module's name.
type single struct{ path string }

func (s single) Close() {}

func (s single) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	if f.Kind != object.RemoteSymbols {
		return "", nil
	}
	err := check(s.path, f)
	if err == nil {
		return s.path, nil
	}
	a := attempt(s.path, err)
	if m, _ := breakpad.Identify(s.path); a.Kind == object.Mismatched && !strings.EqualFold(m.Name, f.Name) {
		a.Kind = object.Absent // it is of another module, which is no problem of this one
	}
	return "", []object.Attempt{a}
}

func attempt(path string, err error) object.Attempt {
	a := object.Attempt{Path: path, Reason: download.WithoutPath(err).Error(), Kind: object.Unreadable}
	var wrong download.WrongError
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		a.Kind = object.Absent
	case errors.As(err, &wrong):
		a.Kind = object.Mismatched
	}
	return a
}

// refused returns the attempt of a store that is not searched.
func refused(where string, err error) []object.Attempt {
	if errors.Is(err, errOther) {
		return nil
	}
	return []object.Attempt{{Path: where, Reason: "not asked: " + err.Error(), Kind: object.Unreadable}}
}
