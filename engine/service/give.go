// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/internal/host"
)

// buildIDPath is the folder of files by build ID, in the protocol of debuginfod (debuginfod(8)).
const buildIDPath = "/buildid/"

// Headers of debuginfod.
const (
	headerFile    = "X-Debuginfod-File"
	headerSize    = "X-Debuginfod-Size"
	headerMaxSize = "X-Debuginfod-Maxsize"
)

// aSection is the kind of a part of a file, which no other server is asked for.
const aSection object.RemoteKind = "section"

// wantedFile is a file that a caller wants, or a section of one.
type wantedFile struct {
	object.RemoteFile
	section string
}

// isBuildID reports whether a request is for a file by build ID.
func isBuildID(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, buildIDPath) && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// wantedByID reads the path of a request. Clients differ in whether they escape the slashes of source
// files.
func wantedByID(escaped string) (f wantedFile, err error) {
	id, rest, _ := strings.Cut(strings.TrimPrefix(escaped, buildIDPath), "/")
	kind, name, hasName := strings.Cut(rest, "/")
	f.Kind = object.RemoteKind(kind)
	if f.BuildID, err = hex.DecodeString(id); err != nil || len(f.BuildID) < objects.MinID || len(f.BuildID) > objects.MaxID {
		return f, badRequest.new(fmt.Sprintf("build ID %.160q: expected %d to %d bytes in hexadecimal", id, objects.MinID, objects.MaxID))
	}
	if name, err = url.PathUnescape(name); err != nil {
		return f, badRequest.new("the path cannot be read: " + err.Error())
	}
	switch {
	case f.Kind == object.RemoteDebuginfo && !hasName, f.Kind == object.RemoteExecutable && !hasName:
	case f.Kind == object.RemoteSource && name != "":
		f.Source = "/" + strings.TrimLeft(name, "/")
	case f.Kind == aSection && name != "":
		f.section = name
	default:
		return f, notFound.new(fmt.Sprintf("there is nothing at %.200q, expected debuginfo, executable, source/PATH or section/NAME of a build ID", escaped))
	}
	return f, nil
}

// giveByID answers with a file by build ID.
func (s *Server) giveByID(w http.ResponseWriter, r *http.Request, req *request) error {
	f, err := wantedByID(r.URL.EscapedPath())
	if err != nil {
		return err
	}
	return s.giveFile(w, r, req, &f)
}

// giveFile answers with a file that was put, is beneath the folders of the server, or at another
// server.
func (s *Server) giveFile(w http.ResponseWriter, r *http.Request, req *request, f *wantedFile) error {
	g := giver{s, r, req}
	found, err := g.find(f)
	if err != nil {
		return err
	}
	defer found.Close()
	return g.send(w, found, gzipFor(r, f))
}

// gzipFor reports whether the caller takes an answer that is packed. What it asks a part of is not.
func gzipFor(r *http.Request, f *wantedFile) bool {
	if r.Method == http.MethodHead || r.Header.Get("Range") != "" || f.Kind == object.RemoteSymbols {
		return false
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, parameters, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return !isZero(parameters)
		}
	}
	return false
}

// isZero reports whether the weight of an encoding refuses it (RFC 9110, 12.4.2).
func isZero(parameters string) bool {
	weight, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
	q, err := strconv.ParseFloat(weight, 64)
	return ok && err == nil && q == 0
}

// foundFile is a file that is given, or a part of one.
type foundFile struct {
	*os.File
	info fs.FileInfo
	name string    // without the folders of this machine; "": it was put, without a name
	part *job.Span // nil: all of it
}

// giver finds and sends files for one request.
type giver struct {
	*Server
	r   *http.Request
	req *request
}

// find opens a file. The error is a problem.
func (g *giver) find(f *wantedFile) (*foundFile, error) {
	switch f.Kind {
	case aSection:
		return g.findSection(f)
	case object.RemoteSource:
		return g.findSource(f)
	}
	return g.whole(f.RemoteFile)
}

// whole opens a whole file, wherever it is.
func (g *giver) whole(f object.RemoteFile) (*foundFile, error) {
	if found, err := g.here(f); found != nil || err != nil {
		return found, err
	}
	return g.fromServers(f)
}

// here opens a file that was put, or is beneath the folders of the server; nil where there is none. What
// other callers have put comes last: it has the build ID, and may be anything else.
func (g *giver) here(f object.RemoteFile) (*foundFile, error) {
	own := g.store.Of(g.req.caller)
	if kind, ok := putKinds[f.Kind]; ok {
		if found, err := g.put(f.Kind, own.Own(f.BuildID, kind)); found != nil || err != nil {
			return found, err
		}
	}
	path, err := g.folders.Find(g.r.Context(), f.BuildID, f.Kind)
	if err != nil {
		return nil, err
	}
	if path != "" {
		if found, err := opened(path); found != nil || err != nil {
			g.metrics.gave(f.Kind, "folders")
			return found, err
		}
	}
	path, _ = own.Fetch(f)
	return g.put(f.Kind, path)
}

// putKinds are the kinds of files that are put, as their store calls them.
var putKinds = map[object.RemoteKind]string{
	object.RemoteExecutable: objects.Executable, object.RemoteDebuginfo: objects.DebugInfo, object.RemotePDB: objects.DebugInfo,
}

// put opens a file that was put; nil where there is none.
func (g *giver) put(kind object.RemoteKind, path string) (*foundFile, error) {
	if path == "" {
		return nil, nil
	}
	found, err := opened(path)
	if found != nil {
		found.name = "" // is not the one that it had
		g.metrics.gave(kind, "objects")
	}
	return found, err
}

// opened opens a regular file; nil where it is gone.
func opened(path string) (*foundFile, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|host.WithoutWaiting, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, err
	}
	return &foundFile{File: file, info: info, name: filepath.Base(path)}, nil
}

// maxDownloads bounds the files that are fetched from other servers at a time, for callers that
// want the files themselves.
const maxDownloads = 8

// fromServers opens a file that other servers have.
func (g *giver) fromServers(f object.RemoteFile) (*foundFile, error) {
	if g.Remote == nil && g.Symbols == nil {
		g.metrics.gave(f.Kind, "nowhere")
		return nil, absent(f)
	}
	if err := g.refuseCircle(f); err != nil {
		return nil, err
	}
	if err := g.downloads.enter(g.r.Context(), g.req.caller); err != nil {
		return nil, err
	}
	type outcome struct {
		path  string
		tried []object.Attempt
	}
	got := make(chan outcome, 1)
	go func() { // a download goes on for the cache when its caller is gone
		defer g.downloads.leave(g.req.caller)
		path, tried := g.upstream.Fetch(f)
		got <- outcome{path, tried}
	}()
	select {
	case o := <-got:
		return g.downloaded(f, o.path, o.tried)
	case <-g.r.Context().Done():
		return nil, g.r.Context().Err()
	}
}

// downloaded opens a file of the cache of downloads.
func (g *giver) downloaded(f object.RemoteFile, path string, tried []object.Attempt) (*foundFile, error) {
	if path != "" {
		found, err := opened(path)
		if found != nil {
			found.name = cmp.Or(filepath.Base(f.Source), f.Name)
			g.metrics.gave(f.Kind, "servers")
		}
		if found != nil || err != nil {
			return found, err
		}
	}
	g.metrics.gave(f.Kind, "nowhere")
	for _, a := range tried {
		if a.Kind != object.Absent {
			p := unreached.new("a server that may have it does not give it")
			p.cause = errors.New(a.Path + ": " + a.Reason)
			return nil, p
		}
	}
	return nil, absent(f)
}

// Via is the header of this name in requests of servers to other servers, so that two that ask each other
// for a file do not wait for each other.
const Via = "1.1 unwindd"

// refuseCircle refuses a file for which another server asks this one, while this one asks others for
// it: that may be the same request.
func (g *giver) refuseCircle(f object.RemoteFile) error {
	isOurs, isRelayed := g.r.Header.Get("Via") == Via, g.r.Header.Get("X-Forwarded-For") != ""
	if !isOurs && !isRelayed || !g.upstream.isUnderway(f) {
		return nil
	}
	if isOurs {
		return notFound.new("other servers are asked for the file at this moment, and it is not here")
	}
	p := busy.new("other servers are asked for the file at this moment")
	p.retry = retryAfter
	return p
}

// absent is the problem of a file that is nowhere.
func absent(f object.RemoteFile) error {
	switch {
	case f.Source != "":
		return notFound.new(fmt.Sprintf("no source file of this path is known of build ID %x: sources beneath --sysroot are given where debug information of the server's own folders names them", f.BuildID))
	case len(f.BuildID) == 0 || f.Kind == object.RemotePDB:
		return notFound.new(fmt.Sprintf("nobody here has the file %q with the identifier %q", f.Name, f.ID))
	}
	return notFound.new(fmt.Sprintf("nobody here has the %s of build ID %x", f.Kind, f.BuildID))
}

// isAbsent reports whether an error is the problem of a file that is nowhere.
func isAbsent(err error) bool {
	var p *problem
	return errors.As(err, &p) && p.Status == http.StatusNotFound
}

// findSection finds a section: in the debug information, or else in the executable.
func (g *giver) findSection(f *wantedFile) (*foundFile, error) {
	var first error
	for _, kind := range []object.RemoteKind{object.RemoteDebuginfo, object.RemoteExecutable} {
		found, err := g.whole(object.RemoteFile{Kind: kind, BuildID: f.BuildID})
		if err == nil {
			var about *job.Object
			about, err = g.identify(g.r.Context(), g.req, sentObject{name: string(kind), identify: job.Identify{Section: f.section}}, found.File)
			if err == nil && about.Section != nil && about.BuildID == hex.EncodeToString(f.BuildID) {
				found.part, found.name = about.Section, f.section
				return found, nil
			}
			_ = found.Close()
		}
		first = cmp.Or(first, err)
	}
	if first != nil && !isAbsent(first) {
		return nil, first
	}
	return nil, notFound.new(fmt.Sprintf("nobody here has section %.200q of build ID %x", f.section, f.BuildID))
}

// findSource finds a source file: beneath the sysroot, where debug information there names it, or at
// another server.
func (g *giver) findSource(f *wantedFile) (*foundFile, error) {
	found, err := g.ownSource(f)
	if found != nil || err != nil {
		return found, err
	}
	return g.fromServers(f.RemoteFile)
}

// ownSource is a source file beneath the sysroot; nil where there is none. Debug information that a
// caller has put could name any file.
func (g *giver) ownSource(f *wantedFile) (*foundFile, error) {
	if g.Sysroot == "" {
		return nil, nil
	}
	known, err := g.folders.Find(g.r.Context(), f.BuildID, object.RemoteDebuginfo)
	if known == "" || err != nil {
		return nil, err
	}
	place, _, err := object.Locate(g.Sysroot, path.Clean(f.Source))
	if err != nil {
		return nil, nil
	}
	debuginfo, err := opened(known)
	if debuginfo == nil || err != nil {
		return nil, err
	}
	defer debuginfo.Close()
	about, err := g.identify(g.r.Context(), g.req, sentObject{name: debuginfo.name, identify: job.Identify{Source: f.Source}}, debuginfo.File)
	if err != nil || !about.NamesSource {
		return nil, err
	}
	g.metrics.gave(f.Kind, "folders")
	return opened(place)
}

// leastPacked is the size of the smallest file that is packed for a caller, in bytes.
const leastPacked = 4096

// send sends a file, or the part of it that the caller asks for.
func (g *giver) send(w http.ResponseWriter, f *foundFile, mayPack bool) error {
	content := io.NewSectionReader(f, 0, f.info.Size())
	if f.part != nil {
		content = io.NewSectionReader(f, int64(f.part.Offset), int64(f.part.Size)) //nolint:gosec // is in the file
	}
	if most, err := strconv.ParseInt(g.r.Header.Get(headerMaxSize), 10, 64); err == nil && most > 0 && content.Size() > most {
		return unwanted.new(fmt.Sprintf("the file has %d bytes, and the caller takes at most %d", content.Size(), most))
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set(headerSize, strconv.FormatInt(content.Size(), 10))
	h.Set("Etag", fmt.Sprintf(`"%x-%x"`, f.info.ModTime().UnixNano(), content.Size()))
	h.Set("Cache-Control", g.cacheControl())
	if f.name != "" {
		h.Set(headerFile, url.PathEscape(f.name))
	}
	out := &sentAnswer{ResponseWriter: w}
	if mayPack && content.Size() >= leastPacked && g.mayPack() {
		defer g.packed()
		return g.pack(out, f.info.ModTime(), content)
	}
	http.ServeContent(out, g.r, "", f.info.ModTime(), content)
	g.metrics.sent(int(out.sent))
	return out.failure()
}

// cacheControl lets caches of others keep a file, except where callers have to show who they are.
func (s *Server) cacheControl() string {
	if *s.tokens.Load() != nil {
		return "private"
	}
	return "public"
}

// mayPack reports whether another file may be packed at this moment; packed says that one was. There are
// as many as requests that are worked on: packing takes a processor.
func (s *Server) mayPack() bool {
	select {
	case s.packing <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *Server) packed() { <-s.packing }

// pack sends a whole file, packed.
func (g *giver) pack(w *sentAnswer, modified time.Time, content io.Reader) error {
	h := w.Header()
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	h.Set("Etag", "W/"+h.Get("Etag"))
	h.Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, err = io.Copy(z, content)
	err = errors.Join(err, z.Close())
	g.metrics.sent(int(w.sent))
	if err != nil {
		return &brokenError{errors.Join(w.failure(), err)}
	}
	return nil
}

// sentAnswer records what became of an answer, which http.ServeContent does not tell.
type sentAnswer struct {
	http.ResponseWriter
	sent int64
	err  error
}

// Write implements io.Writer.
func (w *sentAnswer) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.sent += int64(n)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// failure is the error of a caller that took nothing more.
func (w *sentAnswer) failure() error {
	if w.err == nil {
		return nil
	}
	return &brokenError{canceled.new("the caller took nothing more: " + w.err.Error())}
}
