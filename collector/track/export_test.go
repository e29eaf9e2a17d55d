package track

// Alike is for the tests that look from outside.
var Alike = alike
