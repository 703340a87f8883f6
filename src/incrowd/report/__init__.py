"""Labels, charts and offline pages: what people look at. Everything a page needs is inside it."""
