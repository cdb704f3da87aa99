// SPDX-License-Identifier: Apache-2.0

package php

// layout is where a version of PHP, built for 64 bits and without threads, has what. Offsets are
// in bytes. An offset of 0 among the groups of fibers and of errors stands for one that the
// version does not have.
type layout struct {
	version string // "8.2"
	api     uint64 // ZEND_MODULE_API_NO, which every module of the version has

	executor executorLayout
	opArray  opArrayLayout
	fiber    fiberLayout
	errors   errorLayout

	generatorParent uint64 // zend_generator: node.parent
	generatorFrame  uint64 // zend_generator: execute_data
	handler         uint64 // zend_internal_function
	argument        uint64 // the size of a zend_internal_arg_info
	slots           uint64 // zend_class_entry: properties_info_table
	hasPackedValues bool   // arrays without keys have values, and no buckets
	indirect        uint8  // the type of a value that leads to another one
	isClosure       uint64 // the bit of fn_flags of a closure
}

// executorLayout is zend_executor_globals.
type executorLayout struct {
	frame, exception, lineBefore, exceptionOps, objects, activeFiber uint64
}

// opArrayLayout is zend_op_array.
type opArrayLayout struct {
	size, lastVariable, last, code, variables, file, lines uint64
}

// fiberLayout is zend_fiber.
type fiberLayout struct{ status, frame, bottom uint64 }

// errorLayout is where php_core_globals has the last error.
type errorLayout struct {
	kind, text, file, line   uint64
	isPlainText, isPlainFile bool // a char *, not a zend_string *
}

// layouts are the versions that are known. They were taken from the versions' headers, except 8.3
// and 8.5: their functions that read the members were disassembled.
var layouts = []layout{
	{
		version: "7.4", api: 20190902,
		executor:        executorLayout{frame: 488, exception: 864, lineBefore: 880, exceptionOps: 888, objects: 840},
		opArray:         opArrayLayout{size: 224, lastVariable: 52, last: 60, code: 64, variables: 96, file: 136, lines: 144},
		errors:          errorLayout{kind: 520, text: 528, file: 536, line: 544, isPlainText: true, isPlainFile: true},
		generatorParent: 160, generatorFrame: 64, handler: 48, argument: 24, slots: 232, indirect: 13, isClosure: 1 << 20,
	},
	{
		version: "8.2", api: 20220829,
		executor:        executorLayout{frame: 488, exception: 864, lineBefore: 880, exceptionOps: 888, objects: 840, activeFiber: 1680},
		opArray:         opArrayLayout{size: 248, lastVariable: 76, last: 80, code: 88, variables: 112, file: 152, lines: 160},
		fiber:           fiberLayout{status: 104, frame: 280, bottom: 288},
		errors:          errorLayout{kind: 504, text: 512, file: 520, line: 528},
		generatorParent: 152, generatorFrame: 56, handler: 72, argument: 32, slots: 248, hasPackedValues: true, indirect: 12, isClosure: 1 << 22,
	},
	{
		version: "8.3", api: 20230831,
		executor:        executorLayout{frame: 488, exception: 864, lineBefore: 880, exceptionOps: 888, objects: 840, activeFiber: 1664},
		opArray:         opArrayLayout{size: 240, lastVariable: 72, last: 76, code: 80, variables: 104, file: 144, lines: 152},
		fiber:           fiberLayout{status: 104, frame: 288, bottom: 296},
		errors:          errorLayout{kind: 488, text: 496, file: 504, line: 492},
		generatorParent: 152, generatorFrame: 56, handler: 72, argument: 32, slots: 248, hasPackedValues: true, indirect: 12, isClosure: 1 << 22,
	},
	{
		version: "8.4", api: 20240924,
		executor:        executorLayout{frame: 488, exception: 936, lineBefore: 952, exceptionOps: 960, objects: 856, activeFiber: 1752},
		opArray:         opArrayLayout{size: 256, lastVariable: 92, last: 96, code: 104, variables: 128, file: 168, lines: 176},
		fiber:           fiberLayout{status: 104, frame: 288, bottom: 296},
		errors:          errorLayout{kind: 488, text: 496, file: 504, line: 492},
		generatorParent: 152, generatorFrame: 56, handler: 88, argument: 32, slots: 248, hasPackedValues: true, indirect: 12, isClosure: 1 << 22,
	},
	{
		version: "8.5", api: 20250925,
		executor:        executorLayout{frame: 512, exception: 960, lineBefore: 976, exceptionOps: 984, objects: 880, activeFiber: 1776},
		opArray:         opArrayLayout{size: 256, lastVariable: 92, last: 96, code: 104, variables: 128, file: 168, lines: 176},
		fiber:           fiberLayout{status: 104, frame: 288, bottom: 296},
		errors:          errorLayout{kind: 488, text: 496, file: 504, line: 492},
		generatorParent: 152, generatorFrame: 56, handler: 88, argument: 32, slots: 248, hasPackedValues: true, indirect: 12, isClosure: 1 << 22,
	},
}

// The offsets below are the same in all versions.
const (
	frameSize     = 80 // zend_execute_data, up to its variables
	frameOp       = 0
	frameFunction = 24
	frameThis     = 32 // a value; its second half has the flags of the call and its arguments' number
	frameFlags    = 40
	frameCount    = 44
	frameCaller   = 48

	functionFlags = 4
	functionName  = 8
	functionClass = 16
	functionCount = 32 // of arguments
	functionTypes = 40 // arg_info

	opSize     = 32
	opExtended = 20
	opLine     = 24
	opCode     = 28

	classType   = 0
	className   = 8
	classParent = 16
	classCount  = 32 // of declared properties

	objectNumber = 8
	objectClass  = 16
	objectExtra  = 32 // a table of properties that are not declared
	objectSlots  = 40

	stringHash   = 8
	stringLength = 16
	stringBytes  = 24

	tableFlags = 8
	tableData  = 16
	tableUsed  = 24
	tableCount = 28
	tableSize  = 56
	bucketSize = 32
	bucketHash = 16
	bucketKey  = 24

	valueSize = 16
	valueType = 8

	referenceValue = 8

	propertyName = 8

	moduleSize    = 168
	moduleAPI     = 4
	moduleDebug   = 8
	moduleThreads = 9
	moduleName    = 32
	moduleVersion = 88
)

// The types of functions.
const (
	functionInternal = 1
	functionUser     = 2
	functionEval     = 4
)

// The types of values.
const (
	typeUndefined = iota
	typeNull
	typeFalse
	typeTrue
	typeInteger
	typeFloat
	typeString
	typeArray
	typeObject
	typeResource
	typeReference

	typePointer74 = 14 // in a table of the interpreter's own
	typePointer   = 13
)

// Flags and operations.
const (
	callTop       = 1 << 17 // a native activation of the interpreter ends with the call
	flagVariadic  = 1 << 14 // of a function
	tableIsPacked = 1 << 2

	opIncludeOrEval = 73
	opLast          = 255
)

// includes are the kinds of opIncludeOrEval, by its extended value.
var includes = map[uint64]string{1: "eval", 2: "include", 4: "include_once", 8: "require", 16: "require_once"}
