package api

// Version is the version of the three programs, which belong together.
const Version = "0.1.0"
