package engine

import (
	"context"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/profile"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
)

// This file names what walks and profiles give, and what is asked with, so that
// who uses an Engine imports one package.

// What package walk makes of a thread or a sample.
type (
	Stack         = walk.Stack
	Frame         = walk.Frame
	RegisterValue = walk.RegisterValue
	Stopped       = walk.Stopped
	StopReason    = walk.StopReason
	Launcher      = walk.Launcher
	LaneGroup     = walk.LaneGroup
	LaneSet       = walk.LaneSet
	LaneState     = walk.LaneState
	Sample        = walk.Sample
	Walker        = walk.Walker
	Synthetic     = walk.Synthetic
	Piece         = walk.Piece
	Surroundings  = walk.Surroundings
)

// What package code found out.
type (
	FoundBy    = code.FoundBy
	ModuleInfo = code.Info
	DebugInfo  = code.DebugInfo
)

// What package profile makes of a recording.
type (
	Profile        = profile.Profile
	ProfileOptions = profile.Options
	ProfileEvent   = profile.Event
	ProfileThread  = profile.Thread
	ProfileSample  = profile.Sample
	ProfileStack   = profile.Stack
	ProfileFrame   = profile.Frame
	ProfileModule  = profile.Module
)

// How a frame was found; see code.FoundBy.
const (
	ByContext      = code.ByContext
	ByCFI          = code.ByCFI
	ByObject       = code.ByObject
	ByRules        = code.ByRules
	ByFramePointer = code.ByFramePointer
	ByScan         = code.ByScan
	ByCallChain    = code.ByCallChain
	ByLaunch       = code.ByLaunch
)

// Why a stack ends; see walk.StopReason.
const (
	StopOutermost    = walk.StopOutermost
	StopEndOfStack   = walk.StopEndOfStack
	StopNoModule     = walk.StopNoModule
	StopNoRow        = walk.StopNoRow
	StopNoProgress   = walk.StopNoProgress
	StopFrameLimit   = walk.StopFrameLimit
	StopPluginFailed = walk.StopPluginFailed
	StopNoMemory     = walk.StopNoMemory
)

// What a lane does; see walk.LaneState.
const (
	LaneActive     = walk.LaneActive
	LaneInactive   = walk.LaneInactive
	LaneNotOnEntry = walk.LaneNotOnEntry
	LaneUnknown    = walk.LaneUnknown
)

// What came of looking for debug information; see code.DebugInfo.
const (
	DebugInfoFound      = code.DebugInfoFound
	DebugInfoNone       = code.DebugInfoNone
	DebugInfoMismatch   = code.DebugInfoMismatch
	DebugInfoUnreadable = code.DebugInfoUnreadable
)

// Errors of walks.
var (
	// ErrNoFrame says that a stack has fewer frames than were asked for.
	ErrNoFrame = walk.ErrNoFrame
	// ErrNotWalked is wrapped by the error of Walked for a target that was read,
	// and in which nothing could be walked for lack of an architecture.
	ErrNotWalked = walk.ErrNotWalked
)

// Surround is a context like ctx, which is one that Evaluate gave, with other
// surroundings; see walk.Surround.
func Surround(ctx locexpr.Context, s Surroundings) (other locexpr.Context, ok bool) {
	return walk.Surround(ctx, s)
}

// Profile walks the stacks of all samples of a perf.data file, and joins samples
// of accelerators to them. The path may be "" where there are such. What went
// wrong with one of them is why its stack ends; the error is that there is no
// file, or that it is no recording.
func (e *Engine) Profile(ctx context.Context, path string, o ProfileOptions) (*Profile, error) {
	k := profile.Maker{Shared: e.shared, Plugins: e.plugins, Finder: e.Finder, Sysroot: e.options.Sysroot}
	return k.Make(ctx, path, o)
}
